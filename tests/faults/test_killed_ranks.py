"""Two processes that train together, of which one is killed: the other ends, and the same command continues."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from faults.commands import ForkServer, wait_for
from faults.draws import cases, draw
from faults.same import assert_same_run
from faults.trainings import SETTINGS
from small_text import write_text

TWO = [
    "trainer=ddp",
    "trainer.accelerator=cpu",
    "trainer.devices=2",
    "trainer.max_epochs=40",
    "checkpoint_every=5",
]
SECONDS = 60.0  # in which what is left of a run has to end


@pytest.fixture(scope="module")
def whole(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    ended = server.run("train", *words(folder, folder / "whole"))
    assert ended.code == 0, ended.err
    return folder / "whole"


def words(folder: Path, run_dir: Path) -> list[str]:
    return [*write_text(folder), *SETTINGS, *TWO, f"run_dir={run_dir}"]


def second_rank(first: int) -> int:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True)
    return int(listed.stdout.split()[0])


@pytest.mark.parametrize("number", cases(0, 0.25))
@pytest.mark.parametrize("whom", ["first", "second", "both"])
@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGTERM])
def test_a_rank_is_ended(
    server: ForkServer, whole: Path, tmp_path: Path, whom: str, what: signal.Signals, number: int
) -> None:
    run_dir = tmp_path / "run"
    training = server.start("train", *words(whole.parent, run_dir))
    wait_for(run_dir / "last.ckpt")
    ranks = [training.pid, second_rank(training.pid)]
    time.sleep(draw(f"{whom} {what.name}", number).uniform(0, 1.5))
    for rank in {"first": ranks[:1], "second": ranks[1:], "both": ranks}[whom]:
        try:
            os.kill(rank, what)
        except ProcessLookupError:  # the run has come to its end
            continue
    ended = training.end(SECONDS)
    assert not ended.late, "the first rank is left at work"
    until = time.monotonic() + SECONDS
    while Path("/proc", str(ranks[1])).exists():
        assert time.monotonic() < until, "the second rank is left at work"
        time.sleep(0.05)
    if not (run_dir / "result.json").exists():
        again = server.run("train", *words(whole.parent, run_dir))
        assert (again.code, again.err) == (0, ""), again
    assert_same_run(whole, run_dir)
