"""SIGTERM: every process of a training ends within seconds, says so in one line, and the same command continues."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornn.command_line.ending import TERMINATED as FOR_A_SHELL
from hornn.run.termination import TERMINATED, heed
from words import settled

ROOT = Path(__file__).parents[2]
LONG = ["trainer.max_epochs=4000", "schedule=constant", "checkpoint_every=5"]
TWO = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"]
pytestmark = pytest.mark.slow


def test_one_exit_code() -> None:
    assert TERMINATED == FOR_A_SHELL == 143


def test_the_signal_of_a_cluster_is_taken_from_lightning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning would write a checkpoint of its own, which the test would score. Elsewhere the signal stays."""
    given = dict[int, Any]()
    monkeypatch.setattr(signal, "signal", given.__setitem__)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    heed(SimpleNamespace(world_size=1))
    assert given.keys() == {signal.SIGTERM}
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    heed(SimpleNamespace(world_size=1))
    assert given.keys() == {signal.SIGTERM, signal.SIGUSR1}
    with pytest.raises(SystemExit):
        given[signal.SIGUSR1](signal.SIGUSR1, None)


def begin(python: str, small: list[str], run_dir: Path, *words: str) -> subprocess.Popen[str]:
    """A training in a process group of its own, after its first checkpoint."""
    training = subprocess.Popen(
        [python, str(ROOT / "src" / "train.py"), *settled([*small, *LONG, f"run_dir={run_dir}", *words])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not (run_dir / "metrics.csv").exists():
        assert training.poll() is None, training.communicate()
        assert time.monotonic() < until, "no epoch ends"
        time.sleep(0.05)
    return training


def ranks_of(pid: int) -> list[int]:
    """The process and those that it started, the first rank first."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [pid, *map(int, listed.stdout.split())]


def end_of(training: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        _, err = training.communicate(timeout=15)
    finally:
        os.killpg(training.pid, signal.SIGKILL) if training.poll() is None else None
    return training.returncode, err


def test_a_training_that_is_terminated_says_so_and_goes_on(
    small: list[str], tmp_path: Path, forked_python: str
) -> None:
    """On another number of processes, too: the machine is no part of a run's name."""
    words = [*small, *LONG, "trainer.max_epochs=20", f"run_dir={tmp_path / 'run'}"]
    training = begin(forked_python, small, tmp_path / "run", "trainer.max_epochs=20", *TWO)
    training.terminate()
    assert end_of(training) == (143, "error: terminated; the same command continues\n")
    assert (tmp_path / "run" / "last.ckpt").exists()
    assert not (tmp_path / "run" / "result.json").exists()
    again = subprocess.run(
        [forked_python, str(ROOT / "src" / "train.py"), *settled(words)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (again.returncode, again.stderr) == (0, "")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["epochs"], result["world_size"], len(result["starts"])) == (20, 1, 2)


def test_it_says_so_too_while_a_corpus_is_prepared(
    command: Callable[..., Any], small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("hornn.run.train.prepare", lambda *given: os.kill(os.getpid(), signal.SIGTERM))
    try:
        done = command("train", *small, f"run_dir={tmp_path / 'run'}")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (done.code, done.err) == (143, "error: terminated; the same command continues\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("whom", ["all ranks", "the first", "the second"])
def test_all_ranks_end_at_once(small: list[str], tmp_path: Path, whom: str) -> None:
    training = begin(sys.executable, small, tmp_path / "run", *TWO)
    ranks = ranks_of(training.pid)
    assert len(ranks) == 2
    for rank in {"all ranks": ranks, "the first": ranks[:1], "the second": ranks[1:]}[whom]:
        os.kill(rank, signal.SIGTERM)
    code, err = end_of(training)
    assert code == 143
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert err.endswith("the same command continues\n")
    until = time.monotonic() + 5
    while any(Path("/proc", str(rank)).exists() for rank in ranks):
        assert time.monotonic() < until, "a rank is left at work"
        time.sleep(0.05)
