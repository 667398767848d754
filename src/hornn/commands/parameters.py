"""Print the table of weight counts; with --write put it into docs/parameters.md, which holds it."""

from pathlib import Path

from hornn.command_line import ending
from hornn.command_line.options import Parser


def main() -> str | None:
    parser = Parser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="renew the block in docs/parameters.md, nothing else"
    )
    write = parser.parse_args().write
    from hornn.parameters import render, renew  # torch, which that needs, takes seconds to load

    return render() if not write else "\n".join(map(str, renew(Path()))) or None


def run() -> None:
    ending.run(main, needed=True)
