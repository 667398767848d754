"""Score text with a trained language model: `python src/evaluate.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("evaluate")
