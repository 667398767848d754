"""Train, test and keep one recurrent language model: `python src/train.py --help`."""

import hydra
from omegaconf import DictConfig

from hornn.configuration import check_keys, compose_reference, launch


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    check_keys(cfg, compose_reference())
    from hornn.experiment import train  # after the command line is understood: torch takes seconds to load

    train(cfg)


if __name__ == "__main__":
    launch(main)
