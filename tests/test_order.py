"""The order in which tests run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from order import deal


def item(file: str, number: int, **slow: int) -> Any:
    marker = SimpleNamespace(kwargs=slow) if slow else None
    return SimpleNamespace(path=Path(file), name=f"{file}{number}", get_closest_marker=lambda name: marker)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_every_worker_begins_with_slow_tests_and_all_tests_run_once(workers: int) -> None:
    quick = [item("q", number) for number in range(100)]
    files = {
        file: [item(file, number, seconds=seconds) for number in range(2)]
        for file, seconds in zip("abcdefg", (40, 9, 8, 7, 6, 5, 5), strict=True)
    }
    items = [*quick[:50], *(one for tests in files.values() for one in tests), *quick[50:]]
    dealt = deal(items, workers)
    assert sorted(one.name for one in dealt) == sorted(one.name for one in items)
    assert [one for one in dealt if one.path == Path("q")] == quick
    assert dealt[0].name == "a0"  # the slowest of all
    first = 0
    for left in range(workers, 0, -1):  # as xdist cuts them
        assert dealt[first].path != Path("q")
        first += (len(items) - first) // left
    names = [one.name for one in dealt]
    for file in files:  # a file's stay together
        assert names.index(f"{file}1") == names.index(f"{file}0") + 1
