"""Train, test and keep one recurrent language model: `python src/train.py --help`."""

import hydra
from omegaconf import DictConfig

from hornn.configuration import check_keys, compose_reference, launch
from hornn.sweep.launcher import register
from hornn.sweep.orphan import end_with_launcher


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    end_with_launcher()
    check_keys(cfg, compose_reference())
    cfg.sweep = {}  # the table is no part of a run
    from hornn.experiment import train  # after the command line is understood: torch takes seconds to load

    train(cfg)


if __name__ == "__main__":
    register()
    launch(main)
