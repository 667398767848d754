"""Print the table of weight counts; with --write put it into docs/parameters.md, which holds it."""

import argparse
from pathlib import Path

from hornn.command_line.ending import run


def main() -> str | None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="renew the block in docs/parameters.md, print nothing"
    )
    write = parser.parse_args().write
    from hornn.parameters import (
        render,
        renew,
    )  # after the command line is understood: torch takes seconds to load

    if not write:
        return render()
    renew(Path())
    return None


if __name__ == "__main__":
    run(main, needed=True)
