"""What a person sees of a training: the whole run's bar, lines without a terminal, a warning of a short run."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hornn.metrics import CHARACTERS, WORDS
from hornn.run import progress, train
from hornn.run.announce import conclude, describe_epoch, explain_epochs
from hornn.run.progress import LiveProgress
from outcome import Command


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[LiveProgress]:
    """The bars of the trainings that a test runs, drawn as in a terminal."""
    made: list[LiveProgress] = []

    def make(console: Console, keeper: Any) -> LiveProgress:
        made.append(LiveProgress(Console(file=io.StringIO(), force_terminal=True, width=80), keeper))
        return made[-1]

    monkeypatch.setattr(train, "LiveProgress", make)
    return made


@pytest.mark.parametrize(
    ("words", "last"),
    [(["trainer.max_epochs=2"], 28), (["trainer.max_epochs=2", "trainer.max_steps=20"], 20)],
)
def test_the_bar_is_that_of_the_run(
    bars: list[LiveProgress], command: Command, small: list[str], tmp_path: Path, words: list[str], last: int
) -> None:
    shown = [word for word in small if "progress_bar" not in word]
    assert command("train", *shown, *words, f"run_dir={tmp_path / 'run'}").code == 0
    (bar,) = bars
    run, scoring = bar.live.tasks
    assert (run.total, run.completed) == (last, last)
    assert scoring.description == "test"
    assert scoring.completed == scoring.total > 0
    drawn = bar.live.console.file.getvalue()  # type: ignore[attr-defined]
    assert "validation" in drawn
    assert "epoch 1/2" in drawn


def test_without_a_bound_there_is_no_time_left(
    bars: list[LiveProgress], command: Command, small: list[str], tmp_path: Path
) -> None:
    shown = [word for word in small if "progress_bar" not in word]
    words = ["trainer.max_epochs=-1", "schedule.threshold=10", "schedule.max_falls=1"]
    assert command("train", *shown, *words, f"run_dir={tmp_path / 'run'}").code == 0
    assert bars[0].live.tasks[0].total is None


def test_a_log_without_a_terminal_has_a_line_now_and_then(
    command: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [word for word in small if "progress_bar" not in word]
    monkeypatch.setattr(progress, "EVERY", 0.0)
    done = command("train", *shown, f"run_dir={tmp_path / 'run'}")
    assert done.code == 0
    assert "  epoch 1/2  update 10 of 28  lr 0.1 train " in done.out
    assert "less than a minute left" in done.out
    monkeypatch.undo()
    assert "update 10" not in command("train", *shown, f"run_dir={tmp_path / 'again'}").out


def test_the_first_line_comes_before_the_work(command: Command, small: list[str], tmp_path: Path) -> None:
    done = command("train", *small, "model=nonsense")
    assert done.out == ""  # what cannot be composed does not begin
    done = command("train", *small, "init_from=nowhere.ckpt", f"run_dir={tmp_path / 'run'}")
    assert (done.code, done.out) == (2, "hornn_fofe on files: loading\n")


def test_a_run_that_has_learned_nothing_says_so(command: Command, small: list[str], tmp_path: Path) -> None:
    done = command("train", *small, "optimizer.lr=1e-9", f"run_dir={tmp_path / 'run'}")
    assert done.code == 0
    assert "worse than the unigram after 28 updates" in done.out
    assert "train longer (trainer.max_epochs, trainer.max_steps)" in done.out
    fallen = ["schedule.max_falls=0", "schedule.threshold=9", "trainer.max_epochs=9"]
    done = command("train", *small, "optimizer.lr=1e-9", *fallen, f"run_dir={tmp_path / 'fallen'}")
    said = "ended by its schedule: validation did not improve after the last of 0 falls of the rate (schedule"
    assert said in done.out
    assert "give its schedule or its callback more patience, or try another optimizer.lr" in done.out
    assert "train longer" not in done.out
    (tmp_path / "fallen/result.json").unlink()  # as if it had been cut in the test
    again = command("train", *small, "optimizer.lr=1e-9", *fallen, f"run_dir={tmp_path / 'fallen'}")
    assert said in again.out


def test_a_run_that_has_learned_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unigram = {"valid_ppl": 9.0, "test_ppl": 9.0}
    result = {
        "choices": {"model": "rnn"},
        "valid_ppl": 8.0,
        "test_ppl": 8.0,
        "baselines": {"unigram": unigram},
    }
    conclude(tmp_path, {**result, "metrics": [{"step": 3}]}, WORDS, "done")
    out = capsys.readouterr().out
    assert "8.00" in out
    assert "worse" not in out
    conclude(
        tmp_path, {**result, "valid_ppl": 9.5, "metrics": [{"step": 1}]}, WORDS, "counts make no updates"
    )
    assert "worse than the unigram\n" in capsys.readouterr().out


def test_characters_are_shown_in_bits() -> None:
    record = {
        "epoch": 2,
        "lr": 0.1,
        "train_ppl": 2.0,
        "valid_ppl": 2.0**1.4375,
        "tokens_per_second": 1.0,
        "seconds": 2.0,
    }
    line = describe_epoch(record, CHARACTERS, is_best=False)
    assert "train   1.000  valid   1.438" in line
    assert "bits per character" in explain_epochs(CHARACTERS)
    assert "train    2.00  valid    2.71" in describe_epoch(record, WORDS, is_best=False)


def test_what_the_data_remark_stands_below_the_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = {"valid_ppl": 8.0, "test_ppl": 8.0}
    result = {"choices": {"model": "rnn"}, **scores, "baselines": {"unigram": scores}}
    conclude(tmp_path, result, WORDS, "done", ["unknown words: 5.0 % of the test text"])
    assert "unknown words: 5.0 % of the test text\n" in capsys.readouterr().out
    conclude(tmp_path, result, WORDS, "done")
    assert "unknown words" not in capsys.readouterr().out
