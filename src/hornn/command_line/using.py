"""The commands that use a trained model: config, keys, then the module that does the work."""

from collections.abc import Callable
from importlib import import_module

import hydra
from omegaconf import DictConfig

from hornn.command_line.ending import interrupted_at_once
from hornn.command_line.messages import launch
from hornn.command_line.strict_keys import check_config_name, check_keys, compose_reference
from hornn.places import CONF


def using(name: str, module: str) -> Callable[[], None]:
    """The command `name` of conf, which calls the function of that name in `module`, imported once keys are right."""

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)
    def main(cfg: DictConfig) -> None:
        with interrupted_at_once():
            check_config_name(name)
            check_keys(cfg, compose_reference())
            command = getattr(import_module(module), name)
        command(cfg)

    return lambda: launch(main, needed=True)
