"""The `--options` of the commands that Hydra does not run."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from hornn.command_line.ending import FAILED, end
from hornn.places import PACKAGE


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, like all others here, and whose help names the command as it is typed."""

    def __init__(self, **given: Any) -> None:
        file = Path(sys.argv[0])
        by_hornn = file.parent == PACKAGE / "commands"
        super().__init__(prog=f"hornn {file.stem}" if by_hornn else f"python src/{file.name}", **given)

    def error(self, message: str) -> NoReturn:
        end(f"{message}; --help lists the options", FAILED)
