"""Tables and figures of all sweeps beside the published numbers: `python src/report.py --help`."""

from hornn.commands.report import run

if __name__ == "__main__":
    run()
