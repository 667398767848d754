"""Weight counts at the papers' sizes: `python src/parameters.py --help`."""

from hornn.commands.parameters import run

if __name__ == "__main__":
    run()
