"""How far a sweep is, or all of them: `hornn status [NAME]`."""

from hornn.command_line import ending
from hornn.command_line.options import Parser


def main() -> None:
    parser = Parser(description="How far all sweeps are, or one sweep with each of its runs.")
    parser.add_argument("name", nargs="?", help="a sweep, the name of its file in outputs/sweeps")
    name = parser.parse_args().name
    from hornn.sweep.status import show

    show(name)


def run() -> None:
    ending.run(main, needed=True)
