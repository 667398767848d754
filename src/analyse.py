"""Measure the memory of a trained network: `python src/analyse.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("analyse")
