"""A folder with a small sweep file, empty or with results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reporting.place import SWEEP, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def broken(place: Place) -> Callable[[str, str], Path]:
    """The sweep file with one thing in it replaced."""

    def replace(old: str, new: str) -> Path:
        assert old in SWEEP
        return place.write_sweep("toy", SWEEP.replace(old, new, 1))

    return replace


@pytest.fixture
def filled(place: Any) -> Any:
    """A place with committed results of three rows, one of them with two seeds, and an ad hoc sweep."""
    for row, seed, score in (
        ("sum-2", 1, 111.5),
        ("sum-2", 2, 112.5),
        ("sum-3", 1, 107.0),
        ("max-2", 1, 109.0),
    ):
        place.commit(row, seed, score, num_parameters=8_640_000 + (row == "max-2"))
    place.record(
        {"row": "model=lstm", "seed": 1, "status": "done", "result": place.result(1, 77.0)}, sweep="adhoc-12"
    )
    return place
