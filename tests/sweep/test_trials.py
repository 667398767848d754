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


def test_a_trial_at_work_is_shown_with_its_last_epoch(tmp_path: Path) -> None:
    job: Any = SimpleNamespace(run_dir=tmp_path, units=WORDS)
    judged: list[Any] = []
    shown: list[str] = []
    attempt = Attempt(0, {}, job, "trial 1 of 4")
    record: Any = None
    trials = Trials([attempt], [], record, judged.append, lambda _: None, shown.append, 1, None, None)  # type: ignore[arg-type]
    trials.at_work = [SimpleNamespace(job=job)]  # type: ignore[list-item]
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
