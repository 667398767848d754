"""A sweep of two rows and two seeds, and a search, whose runs cost nothing (`tests/sweep/fake_train.py`)."""

import json
import time
from pathlib import Path
from typing import Any

from faults.commands import Ended, ForkServer
from hornn.sweep.run_state import is_claimed, is_running

FAKE = Path(__file__).parents[1] / "sweep" / "fake_train.py"
TABLE = """# @package _global_
defaults:
  - override /experiment: demo
sweep:
  name: mini
  title: "Mini"
  paper: "no paper"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1, 2]
  rows:
    - {name: elman, label: elman, run: [model=rnn]}
    - {name: second-order, label: second-order, run: [model=hornn, model.order=2]}
trainer: {max_epochs: 3}
"""
SWEEP = ["-m", "--config-dir=conf", "sweeps=mini", "hydra.launcher.jobs=2", f"hydra.launcher.program={FAKE}"]
SEARCH = ["model=rnn", "trials=4", "study=mine", "trainer.max_epochs=2", f"hydra.launcher.program={FAKE}"]
ENTRIES = {"train": SWEEP, "tune": SEARCH}


def make_place(folder: Path) -> Path:
    (folder / "conf" / "sweeps").mkdir(parents=True)
    (folder / "conf" / "sweeps" / "mini.yaml").write_text(TABLE)
    return folder


def run_dirs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in (folder / "outputs").rglob("starts"))


def wait_until_quiet(folder: Path, seconds: float = 60) -> None:
    """Until no job is at work: those of a killed launcher end by themselves."""
    until = time.monotonic() + seconds
    while any(is_claimed(path) or is_running(path) for path in run_dirs(folder)):
        assert time.monotonic() < until, "a job outlives its launcher"
        time.sleep(0.02)


def go_on(server: ForkServer, entry: str, folder: Path) -> Ended:
    """The same command again; twice where a job was told to end just then, which is no failure."""
    wait_until_quiet(folder)
    ended = server.run(entry, *ENTRIES[entry], folder=folder)
    assert (ended.code, ended.err) == (0, ""), ended
    return ended


def outcome(folder: Path) -> dict[str, Any]:
    """By run: its figures, its epochs, and where its last start began; and what the record says of each row."""
    found: dict[str, Any] = {}
    for run_dir in run_dirs(folder):
        result = json.loads((run_dir / "result.json").read_text())
        epochs = [line.partition(",")[0] for line in (run_dir / "metrics.csv").read_text().splitlines()[1:]]
        found[str(run_dir.relative_to(folder))] = (result["name"], result["test_ppl"], epochs)
    for path in sorted((folder / "outputs" / "sweeps").glob("*.json")):
        jobs = json.loads(path.read_text())["jobs"]
        found[path.name] = sorted((job["row"], job["seed"], job["status"], job["run_dir"]) for job in jobs)
    return found


def starts(folder: Path) -> list[str]:
    return [(run_dir / "starts").read_text() for run_dir in run_dirs(folder)]
