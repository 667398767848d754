"""The `--options` of the commands that Hydra does not run."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from hornn.command_line.ending import FAILED, end
from hornn.places import as_typed


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, like all others here, and whose help names the command as it is typed."""

    def __init__(self, **given: Any) -> None:
        super().__init__(prog=as_typed(f"python src/{Path(sys.argv[0]).name}"), **given)

    def error(self, message: str) -> NoReturn:
        end(f"{message}; --help lists the options", FAILED)
