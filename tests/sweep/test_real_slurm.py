"""A multirun on a real Slurm, watched in a terminal: jobs have to wait, one is cancelled, another queued again."""

import csv
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweep import slurm
from sweep.mini import ROOT, wait_for
from sweep.slurm import Slurm
from sweep.test_slurm import need
from words import settled

EPOCHS = 120


@pytest.fixture
def cluster() -> Iterator[Slurm]:
    if reason := slurm.missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="slurm"))  # munge's socket wants a short path
    cluster = Slurm(folder)
    cluster.start()
    yield cluster
    cluster.stop()
    shutil.rmtree(folder)


class Terminal:
    """A command in a terminal of 100 columns, and all that it has shown."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        ours, theirs = pty.openpty()
        size = {"COLUMNS": "100", "LINES": "30", "TERM": "xterm"}
        self.process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, env={**environment, **size}
        )
        os.close(theirs)
        self.shown = ""
        self.reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self.reader.start()

    def shows(self, pattern: str) -> Callable[[], object]:
        return lambda: re.search(pattern, self.shown)

    def _read(self, ours: int) -> None:
        try:
            while text := os.read(ours, 65536).decode(errors="replace"):
                self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        except OSError:  # the terminal is closed
            pass


def folder_of(seed: int) -> Path | None:
    return next(Path("outputs").rglob(f"seed={seed}"), None)


def has_epochs(seed: int) -> bool:
    folder = folder_of(seed)
    return folder is not None and (folder / "last.ckpt").exists()


@pytest.mark.thorough
@pytest.mark.slow(seconds=80)
def test_a_node_goes_away_and_jobs_are_cancelled_and_queued_again(
    cluster: Slurm, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("slurm")
    monkeypatch.chdir(tmp_path)
    launcher = [
        "hydra/launcher=slurm",
        *("hydra.launcher.gpus_per_node=null", "hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=1"),
        "hydra.launcher.array_parallelism=2",
    ]
    run = [
        "model=rnn",
        "seed=1,2,3",
        "schedule=constant",
        f"trainer.max_epochs={EPOCHS}",
        "checkpoint_every=5",
    ]
    words = [sys.executable, str(ROOT / "src" / "train.py"), "-m", *settled([*launcher, *small, *run])]
    cluster.do("scontrol", "update", "partitionname=main", "state=down")
    terminal = Terminal(words, {**cluster.environment, "OMP_NUM_THREADS": "1"})
    try:
        wait_for(
            terminal.shows("rnn seed=1: queued: Slurm does not start the job, and 2 more: PartitionDown"), 120
        )
        cluster.do("scontrol", "update", "partitionname=main", "state=up")
        wait_for(lambda: has_epochs(1) and has_epochs(2), 240)
        assert terminal.shows(r"rnn +3 +queued")()
        wait_for(terminal.shows(rf"rnn +[12] +running +\d+/{EPOCHS}"), 60)
        (array,) = {line.split("_")[0] for line in cluster.do("squeue", "-h", "--format=%i").split()}

        cluster.lose_the_node()
        wait_for(lambda: cluster.state_of(f"{array}_0") == cluster.state_of(f"{array}_1") == "PENDING", 120)
        cluster.do("scancel", f"{array}_1")
        wait_for(terminal.shows(f"rnn seed=2: unfinished: Slurm's job {array}_1: CANCELLED"), 120)
        cluster.return_the_node()

        wait_for(lambda: has_epochs(3), 240)
        cluster.do("scontrol", "requeue", f"{array}_2")
        _, said = terminal.process.communicate(timeout=480)
    finally:
        terminal.process.kill()
    assert said == ("error: 1 of 3 jobs were cut off: rnn seed=2. The same command continues them\n")
    terminal.reader.join()
    assert re.search(r"2 of 3 done, 1 unfinished\s", terminal.shown)
    for seed in (1, 3):
        folder = folder_of(seed)
        assert folder is not None
        log = (folder / "train.log").read_text()
        assert (log.count("  writes to "), log.count("  continues in ")) == (1, 1)
        with (folder / "metrics.csv").open() as file:
            assert [int(row["epoch"]) for row in csv.DictReader(file)] == list(range(1, EPOCHS + 1))
