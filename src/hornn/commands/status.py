"""How far a sweep is, or all of them: `hornn status [NAME]`."""

import sys

from hornn.command_line import ending


def main() -> None:
    from hornn.sweep.status import show

    show(sys.argv[1] if len(sys.argv) > 1 else None)


def run() -> None:
    ending.run(main, needed=True)
