"""Write down what is said in recordings: `python src/transcribe.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("transcribe")
