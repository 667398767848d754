"""Faults that are put in, and what is left after them. A few strike in every run of the tests, all by `make faults`."""

from collections.abc import Iterator

import pytest

from faults.commands import ForkServer


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `faults` unless `-m` speaks of it."""
    if "faults" not in str(config.getoption("markexpr")):
        left_out = [item for item in items if item.get_closest_marker("faults")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    started = ForkServer(tmp_path_factory.mktemp("said"))
    yield started
    started.close()
