"""Score texts, one a line: `python src/score.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("score")
