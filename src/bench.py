"""Our code beside torch's own layers on this machine: `python src/bench.py --help`."""

from hornn.commands.bench import run

if __name__ == "__main__":
    run()
