"""Measure our code beside torch's own layers on this machine: `python src/bench.py [outputs/bench]`."""

import sys
from pathlib import Path

from hornn.bench import run

if __name__ == "__main__":
    print(run(Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/bench")))
