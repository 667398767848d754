"""Tables and figures of all sweeps beside the published numbers: `python src/report.py --help`."""

from hornn.command_line.ending import start

if __name__ == "__main__":
    start("report")
