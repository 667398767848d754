"""Search the constants that the papers leave open: `hornn tune --help`."""

import re
from pathlib import Path

import hydra
from omegaconf import DictConfig

from hornn.command_line.ending import interrupted_at_once
from hornn.command_line.hydra_patches import options_parser
from hornn.command_line.messages import launch
from hornn.command_line.strict_keys import GIVEN, check_config_name, check_keys, compose_reference
from hornn.places import CONF, script_of
from hornn.sweep.parent_watch import end_with_launcher
from hornn.sweep.search import search

MULTIRUN = re.compile(r"\+*hydra\.mode=['\"]?multirun['\"]?", re.IGNORECASE)


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="tune")
def main(cfg: DictConfig) -> None:
    end_with_launcher()
    check_config_name("tune")
    reference = compose_reference()
    reference.space = {}  # may hold any constant; the search checks them
    with interrupted_at_once(continues=True):
        from hornn.build import check_model  # it loads torch

        check_model(reference.model)
        check_keys(cfg, reference, GIVEN)
    search(cfg, script_of(Path(__file__).with_name("train.py")))


def start() -> None:
    """`main`, but for `-m`, which Hydra would answer before it calls it. Raises ValueError for it."""
    given = options_parser().parse_known_args()[0]
    if (given.multirun or any(map(MULTIRUN.fullmatch, given.overrides))) and not (
        given.help or given.hydra_help
    ):
        raise ValueError(
            "a search runs its trials itself, for one model on one corpus: leave out -m, and give each further model "
            "a command of its own"
        )
    main()


def run() -> None:
    launch(start, continues=True)
