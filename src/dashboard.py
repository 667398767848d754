"""What sweeps found, on Weights & Biases: tables, curves and scores by order, alpha and time.

    python src/dashboard.py project=hornn                  # logs the tables, publishes the dashboard
    python src/dashboard.py project=hornn entity=TEAM      # in a team's project
    python src/dashboard.py project=hornn offline=true     # the tables alone, without a network: `wandb sync` later
    python src/dashboard.py project=hornn spec=FILE        # writes what would be published, sends nothing

results=FOLDER and sweeps=FOLDER are where the runs and the sweep files lie (outputs and sweeps).
"""

import sys

from hornn.dashboard import read_settings, show

if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv):
        sys.exit(print(__doc__))
    try:
        print(show(read_settings(sys.argv[1:])))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
