"""How far a sweep is, or all of them: `python src/sweep_status.py --help`."""

from hornn.commands.status import run

if __name__ == "__main__":
    run()
