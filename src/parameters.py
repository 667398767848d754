"""Print the table of weight counts, or renew it in a file: `python src/parameters.py [README.md]`."""

import sys
from pathlib import Path

from hornn.command_line.ending import run


def main() -> str | None:
    from hornn.parameters import render, renew

    for path in sys.argv[1:]:
        renew(Path(path))
    return None if sys.argv[1:] else render()


if __name__ == "__main__":
    run(main, needed=True)
