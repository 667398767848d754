"""trainer.max_time: the run stops between two updates, says so, and goes on as if nothing had been."""

import csv
from pathlib import Path

import pytest
import torch

from commands.outcomes import refusal, result_of
from hornn.command_line.ending import UNFINISHED
from hornn.run.time_limit import TimeLimit
from outcome import Command


def test_a_run_whose_time_is_over_goes_on(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train("whole").code == 0
    # It is over behind the sixth update, the check of the limit itself included.
    left = iter([1.0] * 6 + [-1.0])
    monkeypatch.setattr(TimeLimit, "time_remaining", lambda self: next(left))
    cut = train("cut", "trainer.max_time=00:00:00:09")
    assert (cut.code, cut.err) == (UNFINISHED, "")
    assert (
        "not finished: trainer.max_time is over, in epoch 1 after update 6; the same command goes on"
        in cut.out
    )
    assert not (tmp_path / "cut" / "result.json").exists()
    assert not (tmp_path / "cut" / "metrics.csv").exists()
    monkeypatch.undo()
    assert train("cut", "trainer.max_time=00:01:00:00").code == 0
    whole, gone_on = result_of(tmp_path / "whole"), result_of(tmp_path / "cut")
    assert gone_on["name"] == whole["name"]
    assert gone_on["test_ppl"] == whole["test_ppl"]
    assert [epoch["step"] for epoch in gone_on["metrics"]] == [epoch["step"] for epoch in whole["metrics"]]
    weights = [
        torch.load(tmp_path / run / "last.ckpt", weights_only=True)["state_dict"] for run in ("whole", "cut")
    ]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_a_run_that_overwrites_goes_on_without_that_word(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it each start would begin anew, and no run longer than its time would ever end."""
    left = iter([1.0] * 5 + [-1.0])
    monkeypatch.setattr(TimeLimit, "time_remaining", lambda self: next(left))
    cut = train("run", "trainer.max_time=00:00:00:09", "overwrite=true")
    assert "; the same command without overwrite=true goes on" in cut.out
    monkeypatch.undo()
    assert "continues in " in train("run").out


def test_time_that_is_over_with_the_last_update_cuts_nothing(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([1.0] * 5 + [-1.0])
    monkeypatch.setattr(TimeLimit, "time_remaining", lambda self: next(left))
    assert train("run", "trainer.max_time=00:00:00:09", "trainer.max_steps=5").code == 0
    with (tmp_path / "run" / "metrics.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["5"]


def test_epochs_of_one_update_end_in_time(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([1.0] * 2 + [-1.0])
    monkeypatch.setattr(TimeLimit, "time_remaining", lambda self: next(left))
    cut = train("run", "trainer.max_time=00:00:00:09", "data.batch_size=1", "data.seq_len=279")
    assert (cut.code, cut.err) == (UNFINISHED, "")
    assert "trainer.max_time is over, in epoch 2 after update 1; the same command goes on" in cut.out


@pytest.mark.each(2)
@pytest.mark.parametrize("value", ["soon", "00:00:00:00", "{weeeks:1}", "4"])
def test_a_time_that_cannot_be_read_is_refused(train: Command, value: str) -> None:
    assert "ime" in refusal(train("run", f"trainer.max_time={value}"))
