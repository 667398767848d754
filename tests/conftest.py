import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest


@pytest.fixture
def corpus_root() -> Callable[[str], str]:
    """The folder of real corpora, if it holds the given file; else the test is skipped."""

    def find(name: str) -> str:
        root = os.environ.get("HORNN_DATA")
        if not root or not Path(root, name).is_file():
            pytest.skip(f"needs {name} in the folder that HORNN_DATA names")
        return root

    return find


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With HORNN_REQUIRE_CORPORA set, a test that wanted a corpus and was skipped has failed."""
    report = yield
    if report.skipped and item.get_closest_marker("corpus") and os.environ.get("HORNN_REQUIRE_CORPORA"):
        report.outcome = "failed"
    return report
