"""Score texts, one a line: `python src/score.py --help`."""

from hornn.commands.score import run

if __name__ == "__main__":
    run()
