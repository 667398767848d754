"""Train, test and keep one recurrent language model: `python src/train.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("train")
