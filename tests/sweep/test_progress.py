"""What a person sees of a sweep."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from hornn.metrics import CHARACTERS, FRAMES
from hornn.run.identity import Identity
from hornn.sweep.job import Job
from hornn.sweep.progress import Line, Watch, duration, seconds_left, table


def make_jobs(count: int, max_epochs: int = 20) -> list[Job]:
    runs = [Identity({}, {}, {}, f"{n:010}", n, Path(f"runs/{n}"), False) for n in range(count)]
    config = {"trainer": {"max_epochs": max_epochs}}
    return [Job([f"row {run.seed}"], [], run, config) for run in runs]


def text_of(console: Console) -> str:
    return console.export_text(clear=False)


@pytest.mark.parametrize(
    ("finished", "running", "queued", "at_once", "left"),
    [
        ([], [5.0], 3, 1, None),
        ([10.0, 30.0], [], 3, 1, 60.0),
        ([10.0, 30.0], [5.0], 3, 1, 75.0),
        ([20.0], [5.0, 15.0], 4, 2, 50.0),
        ([20.0], [5.0], 0, 2, 15.0),  # the last one is not shared
        ([20.0], [50.0], 0, 1, 0.0),
    ],
)
def test_time_left(
    finished: list[float], running: list[float], queued: int, at_once: int, left: float | None
) -> None:
    assert seconds_left(finished, running, queued, at_once) == left


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59.6, 61, 3600, 36125)] == [
        "0:00",
        "1:00",
        "1:01",
        "1:00:00",
        "10:02:05",
    ]


def test_the_table() -> None:
    console = Console(record=True, width=80, file=io.StringIO())
    lines = [
        Line("hornn-2", 1, "done", 12, None, 131.123, 127.456, 83),
        Line("hornn-3", 1, "running", 3, 20, 140.0),
        Line("hornn-4", 2, "queued"),
        Line("music", 1, "done", 12, None, 3.31234, 3.4, 83, units=FRAMES),
        Line("letters", 1, "running", 2, 20, 4.0, units=CHARACTERS),
    ]
    console.print(table(lines, "hornn_table1: 1 of 3 done"))
    assert [line.split() for line in text_of(console).splitlines()] == [
        ["hornn_table1:", "1", "of", "3", "done"],
        ["run", "seed", "status", "epoch", "valid", "test", "time"],
        ["hornn-2", "1", "done", "12", "131.12", "127.46", "1:23"],
        ["hornn-3", "1", "running", "3/20", "140.00"],
        ["hornn-4", "2", "queued"],
        ["music", "1", "done", "12", "3.312", "3.400", "1:23"],
        ["letters", "1", "running", "2/20", "2.000"],
    ]


def test_a_low_terminal_shows_what_is_going_on() -> None:
    console = Console(record=True, width=80, file=io.StringIO())
    states = ["done"] * 10 + ["failed"] + ["done"] * 5 + ["running"] + ["queued"] * 20
    console.print(table([Line(f"row {n}", 1, state) for n, state in enumerate(states)], "title", height=6))
    assert [line.split()[:4] for line in text_of(console).splitlines()[2:]] == [
        ["row", "10", "1", "failed"],
        ["row", "16", "1", "running"],
        ["row", "17", "1", "queued"],
        ["row", "18", "1", "queued"],
        ["row", "19", "1", "queued"],
        ["and", "15", "done,", "17"],
    ]


def test_a_terminal_shows_the_table_and_a_failure_above_it() -> None:
    jobs = make_jobs(2)
    console = Console(record=True, width=80, height=20, force_terminal=True, file=io.StringIO())
    with Watch("mini", jobs, 1, console) as watch:
        jobs[0].status, jobs[0].error = "failed", "the corpus is on fire"
        watch.changed(jobs[0], ["epoch 1", "error: the corpus is on fire"])
        jobs[1].status, jobs[1].epoch, jobs[1].valid_score, jobs[1].test_score = "done", 20, 1.5, 2.5
        watch.changed(jobs[1], [])
        watch.refresh()
    text = text_of(console)
    assert text.index("row 0 seed=0: failed: the corpus is on fire") < text.index(
        "    error: the corpus is on fire"
    )
    assert text.index("    error: the corpus is on fire") < text.rindex("mini: 1 of 2 done, 1 failed")
    assert "row 1 seed=1: done" not in text  # the table says so


def test_colours_that_are_asked_for_make_no_terminal_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = Console(file=io.StringIO())
    assert console.is_terminal
    assert Watch("mini", make_jobs(1), 1, console).live is None


def test_elsewhere_there_is_a_line_for_each_change() -> None:
    jobs = make_jobs(3)
    console = Console(record=True, width=20, force_terminal=False, file=io.StringIO())
    with Watch("mini", jobs, 1, console) as watch:
        jobs[0].status = "running"
        watch.changed(jobs[0], [])
        watch.refresh()
        jobs[0].status, jobs[0].test_score, jobs[0].seconds = "done", 99.5, 30.0
        watch.changed(jobs[0], [])
        jobs[1].take({"valid_nll": 3.3, "test_nll": 3.4567})
        jobs[1].status = "done"
        watch.changed(jobs[1], [])
    assert text_of(console).splitlines() == [
        "mini: 0 of 3 done, 3 queued",
        "row 0 seed=0: running",
        "row 0 seed=0: done in 0:30 with start-up, test 99.50; about 1:00 left",
        "row 1 seed=1: done, test 3.457; about 0:30 left",
        "mini: 2 of 3 done, 1 queued; about 0:30 left",
    ]
