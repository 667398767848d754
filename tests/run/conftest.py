"""Runs on the small corpus."""

from pathlib import Path

import pytest

from outcome import Command


@pytest.fixture
def train(command: Command, small: list[str], tmp_path: Path) -> Command:
    """`train("FOLDER", ...)` trains two epochs on the small corpus there."""
    return lambda folder, *words: command("train", *small, f"run_dir={tmp_path / folder}", *words)
