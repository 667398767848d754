"""Search the constants that the papers leave open: `python src/tune.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("tune")
