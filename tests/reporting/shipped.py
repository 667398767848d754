"""The sweep files of the project, read once for all tests that look into them."""

from pathlib import Path

from hornn.reporting.sweeps import read_sweeps

ROOT = Path(__file__).parents[2]
SWEEPS = {sweep.name: sweep for sweep in read_sweeps(ROOT / "sweeps")}
