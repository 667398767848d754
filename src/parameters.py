"""Weight counts at the papers' sizes: `python src/parameters.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("parameters")
