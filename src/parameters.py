"""Print the table of weight counts; with --write put it into docs/parameters.md, which holds it."""

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="renew the block in docs/parameters.md, print nothing"
    )
    write = parser.parse_args().write
    from hornn.parameters import (
        render,
        renew,
    )  # after the command line is understood: torch takes seconds to load

    try:
        if write:
            renew(Path())
        else:
            print(render())
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
