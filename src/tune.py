"""Search the constants that the papers leave open: `python src/tune.py --help`."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from hornn.configuration import check_keys, compose_reference, launch
from hornn.sweep.orphan import end_with_launcher
from hornn.tune import search


@hydra.main(version_base="1.3", config_path="../conf", config_name="tune")
def main(cfg: DictConfig) -> None:
    end_with_launcher()
    reference = compose_reference()
    reference.space = {}  # may hold any constant; the search checks them
    check_keys(cfg, reference)
    search(cfg, Path(__file__).with_name("train.py"))


if __name__ == "__main__":
    launch(main)
