"""A folder with a small sweep file, empty or with results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reporting.place import SWEEP, Place, fill


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
    return fill(place)
