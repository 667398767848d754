import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from outcome import Command, Outcome
from sweep.mini import ROOT, TABLE, Launch, Start, words, write_table
from sweep.searches import FAKE
from words import settled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: `conf/sweeps/mini.yaml` is a table of two runs."""
    monkeypatch.chdir(tmp_path)
    write_table(TABLE)
    return tmp_path


@pytest.fixture
def launch(
    folder: Path, command: Callable[..., Outcome], quick_jobs: None, monkeypatch: pytest.MonkeyPatch
) -> Launch:
    """`launch("key=value", ..., FAKE_FAIL="1")`: a multirun of runs that cost nothing, here and now."""

    def run(*overrides: str, **environment: str) -> Outcome:
        with monkeypatch.context() as context:
            context.delenv("OMP_NUM_THREADS", raising=False)
            for key, value in environment.items():
                context.setenv(key, value)
            return command("train", *words(*overrides))

    return run


@pytest.fixture
def start(folder: Path, forked_python: str) -> Iterator[Start]:
    """The same as a process that goes on; its output is read from `communicate()`."""
    started: list[subprocess.Popen[str]] = []

    def begin(*overrides: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [forked_python, str(ROOT / "src" / "train.py"), *settled(words(*overrides))],
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def search(command: Command, tmp_path: Path, quick_jobs: None, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`search("key=value", ...)`: a search in the folder of the test over two constants."""
    pytest.importorskip("optuna", reason="needs the tune extra")
    monkeypatch.chdir(tmp_path)
    return lambda *words: command("tune", *FAKE, *words)
