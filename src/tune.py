"""Search the constants that the papers leave open: `python src/tune.py --help`."""

from hornn.commands.tune import run

if __name__ == "__main__":
    run()
