"""How far a sweep is, or all of them: `hornn status [NAME]`."""

import argparse

from hornn.command_line import ending


def main() -> None:
    parser = argparse.ArgumentParser(
        description="How far all sweeps are, or one sweep with each of its runs."
    )
    parser.add_argument("name", nargs="?", help="a sweep, the name of its file in outputs/sweeps")
    name = parser.parse_args().name
    from hornn.sweep.status import show

    show(name)


def run() -> None:
    ending.run(main, needed=True)
