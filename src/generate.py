"""Write text with a trained language model: `python src/generate.py --help`."""

import hydra
from omegaconf import DictConfig

from hornn.configuration import check_keys, compose_reference, launch


@hydra.main(version_base="1.3", config_path="../conf", config_name="generate")
def main(cfg: DictConfig) -> None:
    check_keys(cfg, compose_reference())
    from hornn.trained import generate  # after the command line is understood: torch takes seconds to load

    generate(cfg)


if __name__ == "__main__":
    launch(main)
