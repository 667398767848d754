"""Score text with a trained language model: `python src/evaluate.py --help`."""

from hornn.commands.evaluate import run

if __name__ == "__main__":
    run()
