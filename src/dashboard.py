"""What sweeps found, on Weights & Biases: `python src/dashboard.py --help`."""

from hornn.commands.dashboard import run

if __name__ == "__main__":
    run()
