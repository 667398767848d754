"""Write text with a trained language model: `python src/generate.py --help`."""

from hornn.commands.generate import run

if __name__ == "__main__":
    run()
