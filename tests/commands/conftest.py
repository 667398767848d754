"""Commands on the small corpus."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from small_text import SMALL, write_text

Command = Callable[..., Any]


class Lent(NamedTuple):
    """Overrides for a small corpus, and a finished run on it. Who borrows them changes a copy."""

    text: list[str]
    run: Path


@pytest.fixture(scope="session")
def lent(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Lent:
    folder = tmp_path_factory.mktemp("lent")
    text = write_text(folder)
    done = command("train", *text, *SMALL, f"run_dir={folder / 'run'}")
    assert done.code == 0, done.err
    return Lent(text, folder / "run")


@pytest.fixture
def lent_run(lent: Lent, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lent.run, tmp_path / "run"))


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
