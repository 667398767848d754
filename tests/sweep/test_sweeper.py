"""Some rows of a table, and those that they start from."""

from pathlib import Path

from hornn.run.identity import Identity
from hornn.sweep.job import Job
from hornn.sweep.sweeper import waves_of
from hornn.sweep.table_rows import picked, with_starts


def test_picked_rows_come_as_they_were_named() -> None:
    runs = {name: [f"model={name}"] for name in ("rnn", "lstm", "gru")}
    assert picked(runs, ["gru", "rnn", "gru"]) == ["gru", "rnn"]
    assert picked(runs, None) == ["rnn", "lstm", "gru"]


def test_rows_come_behind_those_that_they_start_from() -> None:
    assert with_starts(["deep", "rnn", "stack"], {"deep": ["rnn"], "stack": ["wide"]}) == [
        "rnn",
        "deep",
        "wide",
        "stack",
    ]
    assert with_starts(["both", "wide"], {"both": ["rnn", "wide"]}) == ["rnn", "wide", "both"]


def test_jobs_that_start_from_others_are_launched_after_them() -> None:
    def job(name: str, *after: Job) -> Job:
        return Job([name], [], Identity({}, {}, {}, name, 1, Path(name), False), {}, after=list(after))

    first, alone = job("first"), job("alone")
    deeper, mixed = job("deeper", first), job("mixed", first, alone)
    assert waves_of([deeper, first, alone, mixed]) == [[first, alone], [deeper, mixed]]
    assert waves_of([alone]) == [[alone]]
    assert waves_of([]) == []
