"""One finished run on the small corpus, for tests that change neither it nor the corpus, but a copy of the run."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from outcome import Command
from small_text import SMALL, write_text


class Lent(NamedTuple):
    """Overrides for a small corpus, and a finished run on it."""

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
def text(lent: Lent) -> list[str]:
    return lent.text


@pytest.fixture
def run_dir(lent: Lent, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lent.run, tmp_path / "run"))
