"""Trials of a search: how they are numbered, shown while they are at work, and drawn."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornn.metrics import WORDS
from hornn.run.epochs import write_epochs
from hornn.sweep.study import Batch
from hornn.sweep.trials import Attempt, Trials
from hornn.sweep.workers import GRACE
from outcome import Command
from sweep.searches import journal

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_the_summary_of_a_search_counts_trials_and_epochs_from_one(search: Command) -> None:
    done = search("trials=4", "seed=5")
    trials = json.loads(journal().with_name("study.json").read_text())["trials"]
    assert [trial["trial"] for trial in trials] == [1, 2, 3, 4]
    assert [trial["epochs"] for trial in trials] == [3] * 4
    scores = [trial["valid_ppl"] for trial in trials]
    lines = [line for line in done.out.splitlines() if line.startswith("trial ")]
    for number, line in enumerate(lines):
        assert line.startswith(f"trial {number + 1} of 4 ")
        assert (" * " in line) == (scores[number] < min(scores[:number], default=1e9)), line


class Stage:
    """One trial, which is at work in a folder, and what became of it: judged, shown, concluded, signalled."""

    def __init__(self, folder: Path, pruned_at: int | None = None, status: str = "running") -> None:
        self.judged: list[Any] = []
        self.shown: list[str] = []
        self.concluded: list[Any] = []
        self.signals: list[str] = []
        self.job: Any = SimpleNamespace(
            run_dir=folder, units=WORDS, name="a", seed=1, status=status, cut_off=False
        )
        self.attempt = Attempt(0, {}, self.job, "trial 1 of 4")
        parts: Any = (None, self.judge, self.concluded.append, self.shown.append, 1, None, None)
        self.trials = Trials([self.attempt], [], *parts)
        self.pruned_at = pruned_at
        process = SimpleNamespace(
            terminate=lambda: self.signals.append("end"), kill=lambda: self.signals.append("kill")
        )
        self.trials.at_work = [SimpleNamespace(job=self.job, process=process)]  # type: ignore[list-item]
        self.trials._interrupt = lambda *_: self.signals.append("interrupt")  # type: ignore[method-assign]

    def judge(self, scores: Any) -> int | None:
        self.judged.append(scores)
        return self.pruned_at


def test_a_trial_at_work_is_shown_with_its_last_epoch(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    trials, judged, shown = stage.trials, stage.judged, stage.shown
    write_epochs(tmp_path, [{"epoch": n, "train_ppl": 9.0, "valid_ppl": 100 / n} for n in (1.0, 2.0)])
    trials.refresh()
    assert judged == [[100, 50]]
    assert shown == ["trial 1 of 4: epoch 2, validation 50.00"]


@pytest.mark.thorough
def test_each_batch_is_drawn_after_those_before(search: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(Batch):
        def draw(self, distributions: Any, seed: int, position: int) -> dict[str, Any]:
            drawn.append((position, len(self.study.trials) - len(drawn) % 2))
            return super().draw(distributions, seed, position)

    drawn: list[tuple[int, int]] = []
    monkeypatch.setattr("hornn.sweep.search.Batch", Told)
    assert search("trials=5", "batch=2", "pruning=null").code == 0
    assert drawn == [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4)]


@pytest.mark.parametrize(
    ("status", "pruned_at", "held", "ends"),
    [
        ("done", None, True, "concluded"),
        ("failed", None, True, "concluded"),  # it diverged
        ("failed", 2, False, "concluded"),
        ("failed", None, False, "a fault"),
        ("running", 2, False, ""),
        ("queued", None, False, ""),
        ("queued", 2, False, "concluded"),  # an earlier search has ended before it told it
    ],
)
def test_how_a_trial_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    pruned_at: int | None,
    held: bool,
    ends: str,
) -> None:
    monkeypatch.setattr("hornn.sweep.trials.result_of", lambda *_: {"status": "diverged"} if held else None)
    monkeypatch.setattr("hornn.sweep.workers.Workers.look_up", lambda *_: None)
    stage = Stage(tmp_path, pruned_at, status)
    write_epochs(tmp_path, [{"epoch": 1.0, "train_ppl": 9.0, "valid_ppl": 8.0}])
    for _ in range(2):
        stage.trials.look_up()
    assert stage.concluded == [stage.attempt] * (ends == "concluded")
    assert (stage.trials.fault is stage.attempt) == (ends == "a fault") == (stage.signals == ["interrupt"])


def test_a_pruned_trial_is_told_to_end_and_killed_only_after_its_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, pruned_at=1)
    write_epochs(tmp_path, [{"epoch": 1.0, "train_ppl": 9.0, "valid_ppl": 8.0}])
    for clock, signals in ((10.0, ["end"]), (10.0 + GRACE, ["end"]), (10.1 + GRACE, ["end", "kill"])):
        monkeypatch.setattr("hornn.sweep.trials.time.monotonic", lambda clock=clock: clock)
        stage.trials.refresh()
        assert stage.signals == signals
