"""What sweeps found, on Weights & Biases: `python src/dashboard.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("dashboard")
