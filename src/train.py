"""Train, test and keep one recurrent language model: `python src/train.py --help`."""

from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from hornn.configuration import check_keys, compose_reference, launch
from hornn.sweep.apart import run_apart
from hornn.sweep.compose import check_not_a_table
from hornn.sweep.launcher import register
from hornn.sweep.orphan import end_with_launcher


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    end_with_launcher()
    check_keys(cfg, compose_reference())
    if HydraConfig.get().mode == RunMode.MULTIRUN:  # in a launcher of Hydra's, not in ours
        run_apart(cfg, Path(__file__))
        return
    check_not_a_table(cfg.sweep, HydraConfig.get())
    cfg.sweep = {}  # the table is no part of a run
    from hornn.experiment import train  # after the command line is understood: torch takes seconds to load

    train(cfg)


if __name__ == "__main__":
    register()
    launch(main)
