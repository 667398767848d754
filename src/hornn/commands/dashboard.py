"""What sweeps found, on Weights & Biases: tables, curves and scores by order, alpha and time.

    python src/dashboard.py project=hornn                  # logs the tables, publishes the dashboard
    python src/dashboard.py project=hornn entity=TEAM      # in a team's project
    python src/dashboard.py project=hornn offline=true     # the tables alone, without a network: `wandb sync` later
    python src/dashboard.py project=hornn spec=FILE        # writes what would be published, sends nothing

results=FOLDER and sweeps=FOLDER are where the runs and the sweep files lie: outputs, and sweeps or else the program's
own sweep files. config_dir=FOLDER adds the tables of your own. A table that cannot be read is left out, with a warning.
"""

import sys

from hornn.command_line import ending


def main() -> str | None:
    if {"-h", "--help"} & set(sys.argv):
        return __doc__
    from hornn.dashboard import read_settings, show

    return show(read_settings(sys.argv[1:]))


def run() -> None:
    ending.run(main)
