"""The `--options` of the commands that Hydra does not run."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from hornn.command_line.ending import FAILED, end
from hornn.places import PACKAGE, sweep_files

RESULTS = Path("outputs")


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, like all others here, and whose help names the command as it is typed."""

    def __init__(self, **given: Any) -> None:
        file = Path(sys.argv[0])
        by_hornn = file.parent == PACKAGE / "commands"
        super().__init__(prog=f"hornn {file.stem}" if by_hornn else f"python src/{file.name}", **given)

    def error(self, message: str) -> NoReturn:
        end(f"{message}; --help lists the options", FAILED)

    def add_folders(self) -> None:
        """The options that say where results and sweep files lie."""
        self.add_argument(
            "--results",
            type=Path,
            default=RESULTS,
            help="folder of runs, records and tables; default %(default)s",
        )
        self.add_argument(
            "--sweeps", type=Path, default=sweep_files(), help="folder of sweep files; default %(default)s"
        )
        self.add_argument(
            "--config-dir",
            type=Path,
            metavar="FOLDER",
            help="a folder like conf, with models and sweeps of your own",
        )
