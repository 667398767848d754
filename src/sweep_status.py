"""How far a sweep is, or all of them: `python src/sweep_status.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("status")
