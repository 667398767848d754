"""Print the table of weight counts; with --write put it into docs/parameters.md, which holds it."""

from pathlib import Path

from hornn.command_line import ending
from hornn.command_line.options import Parser


def main() -> str | None:
    parser = Parser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="renew the block in docs/parameters.md, print nothing"
    )
    write = parser.parse_args().write
    from hornn.parameters import render, renew  # torch, which that needs, takes seconds to load

    if not write:
        return render()
    renew(Path())
    return None


def run() -> None:
    ending.run(main, needed=True)
