"""How far a sweep is, or all of them: `python src/sweep_status.py [NAME]`."""

import sys

from hornn.command_line.ending import run


def main() -> None:
    from hornn.sweep.status import show

    show(sys.argv[1] if len(sys.argv) > 1 else None)


if __name__ == "__main__":
    run(main, needed=True)
