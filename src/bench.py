"""Our code beside torch's own layers on this machine: `python src/bench.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("bench")
