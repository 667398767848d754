"""Train, test and keep one recurrent language model: `hornn train --help`."""

import os
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from hornn.command_line.ending import interrupted_at_once
from hornn.command_line.messages import launch
from hornn.command_line.strict_keys import GIVEN, check_config_name, check_keys, compose_reference
from hornn.places import CONF, script_of
from hornn.sweep.expand import check_not_a_table
from hornn.sweep.launcher import register
from hornn.sweep.parent_watch import end_with_launcher
from hornn.sweep.subprocess_job import run_apart


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def main(cfg: DictConfig) -> None:
    end_with_launcher()
    if HydraConfig.get().mode == RunMode.MULTIRUN:  # in a launcher of Hydra's, not in ours
        run_apart(cfg, script_of(Path(__file__)))  # the process of the run checks the keys
        return
    check_config_name("config")
    first = say_what_begins(cfg)
    reference = compose_reference()
    reference.sweep = {}  # the reader of sweep files knows its keys
    with interrupted_at_once(continues=first):
        from hornn.build import check_model

        check_model(reference.model)
        check_keys(cfg, reference, GIVEN)
        check_not_a_table(cfg.sweep, HydraConfig.get())
        cfg.sweep = {}  # the table is no part of a run
        from hornn.run.train import train

    train(cfg)


def say_what_begins(cfg: DictConfig) -> bool:
    """The first line, before the check of the config, which takes seconds: it loads what the config names.

    Returns whether this process is the one that speaks.
    """
    # With one device the run has one process on this machine, whatever a cluster numbers it.
    alone = OmegaConf.select(cfg, "trainer.devices", throw_on_resolution_failure=False) in (1, "1")
    first = alone or os.environ.get("LOCAL_RANK", "0") == "0"
    if first:
        choices = HydraConfig.get().runtime.choices
        print(f"{choices.get('model')} on {choices.get('data')}: loading", flush=True)
    return first


def start() -> None:
    """`main` with our sweeper and launcher, for which Hydra looks before it calls it."""
    register()
    main()


def run() -> None:
    launch(start, continues=True)


if __name__ == "__main__":  # a further process of an installed package
    run()
