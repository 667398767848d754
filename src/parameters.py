"""Print the table of weight counts, or renew it in a file: `python src/parameters.py [README.md]`."""

import sys
from pathlib import Path

from hornn.parameters import render, renew

if __name__ == "__main__":
    for path in sys.argv[1:]:
        renew(Path(path))
    if not sys.argv[1:]:
        print(render())
