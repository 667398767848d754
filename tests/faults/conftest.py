"""Faults that are put in, and what is left after them. A few strike in every run of the tests, all by `make faults`."""

from collections.abc import Iterator

import pytest

from faults.commands import ForkServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    started = ForkServer(tmp_path_factory.mktemp("said"))
    yield started
    started.close()
