"""How far a sweep is, or all of them: `python src/sweep_status.py [NAME]`."""

import sys

from hornn.sweep.status import show

if __name__ == "__main__":
    try:
        show(sys.argv[1] if len(sys.argv) > 1 else None)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
