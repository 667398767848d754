"""Rescore n-best lists: `python src/rescore.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("rescore")
