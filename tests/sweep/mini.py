"""A table of two runs that cost nothing, and what a test sees of them."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from hornn.sweep.record import Entry, Record
from outcome import Outcome

ROOT = Path(__file__).parents[2]
FAKE = Path(__file__).with_name("fake_train.py")
Launch = Callable[..., Outcome]
Start = Callable[..., subprocess.Popen[str]]

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
  seeds: [1]
  rows:
    - {name: elman, label: elman, run: [model=rnn]}
    - {name: second-order, label: second-order, run: [model=hornn, model.order=2]}
    - {name: told-of, label: told-of, run: null, state: quoted}
"""


def write_table(text: str) -> None:
    path = Path("conf", "sweeps", "mini.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def words(*overrides: str) -> list[str]:
    return ["-m", "--config-dir=conf", f"hydra.launcher.program={FAKE}", *overrides]


def starts() -> dict[str, list[str]]:
    """Where jobs ran, and what each of their starts told-of itself."""
    paths = sorted(Path("outputs").rglob("starts"))
    return {str(path.parent): path.read_text().splitlines() for path in paths}


def recorded(name: str = "mini") -> dict[tuple[str, int], Entry]:
    return {(entry.row, entry.seed): entry for entry in Record(name).read()}


def statuses(name: str = "mini") -> list[str]:
    return [entry.status for entry in Record(name).read()]


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


def pid_of(row: str) -> int:
    """The process that works, or worked last, for the row with the first seed."""
    return int(Path(recorded()[row, 1].run_dir, "pid").read_text())


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout.strip()[:1] not in ("", "Z")
