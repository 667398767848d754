"""Train, test and keep one recurrent language model: `python src/train.py --help`."""

from hornn.commands.train import run

if __name__ == "__main__":
    run()
