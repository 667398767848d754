"""Measure the memory of a trained network: `hornn analyse --help`."""

import hydra
from omegaconf import DictConfig

from hornn.command_line.messages import launch
from hornn.command_line.strict_keys import check_keys, compose_reference
from hornn.places import CONF


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="analyse")
def main(cfg: DictConfig) -> None:
    check_keys(cfg, compose_reference())
    from hornn.analysis.analyse import analyse

    analyse(cfg)


def run() -> None:
    launch(main, needed=True)
