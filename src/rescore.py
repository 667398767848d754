"""Rescore n-best lists: `python src/rescore.py --help`."""

from hornn.commands.rescore import run

if __name__ == "__main__":
    run()
