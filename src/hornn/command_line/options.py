"""The `--options` of the commands that Hydra does not run."""

import argparse
from typing import NoReturn

from hornn.command_line.ending import FAILED, end


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, like all others here."""

    def error(self, message: str) -> NoReturn:
        end(f"{message}; --help lists the options", FAILED)
