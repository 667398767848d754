"""Commands on the small corpus."""

from pathlib import Path

import pytest

from outcome import Command


@pytest.fixture
def run_dir(command: Command, small: list[str], tmp_path: Path) -> Path:
    """A finished run on the small corpus."""
    done = command("train", *small, f"run_dir={tmp_path / 'run'}")
    assert done.code == 0, done.err
    return tmp_path / "run"


@pytest.fixture
def train(command: Command, small: list[str], tmp_path: Path) -> Command:
    """`train.py` on the small corpus in tmp_path/run."""
    return lambda *words: command("train", *small, f"run_dir={tmp_path / 'run'}", *words)
