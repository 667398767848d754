import json

import pytest

from bench.rows import timed
from hornn.bench import program
from hornn.bench.meter import Meter
from hornn.bench.plan import QUICK
from hornn.bench.sections import Bench


@pytest.fixture
def results(tmp_path):
    """A file of results at the quick sizes, with one row."""
    running = Bench(QUICK, Meter(), [timed()])
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(program.report(running)))
    return path
