"""What a person sees of a sweep: a table that moves in a terminal, a line for each change elsewhere."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hornn.metrics import WORDS, Units
from hornn.shown import is_screen
from hornn.sweep.job import Job

STYLES = {
    "running": "cyan",
    "elsewhere": "blue",
    "done": "green",
    "failed": "bold red",
    "unfinished": "yellow",
}
URGENT = ("running", "failed", "elsewhere")  # shown first where the terminal is too low for all


class Line(NamedTuple):
    """One run in the table."""

    row: str
    seed: int
    status: str
    epoch: float | None = None
    max_epochs: int | None = None
    valid_score: float | None = None
    test_score: float | None = None
    seconds: float | None = None
    error: str | None = None
    units: Units = WORDS  # of its scores


def seconds_left(
    finished: Sequence[float], running: Sequence[float], queued: int, at_once: int
) -> float | None:
    """The time left, if each job takes as long as the finished ones did on average; None before one is.

    finished: how long each took, running: for how long each has run, in seconds.
    """
    if not finished:
        return None
    mean = sum(finished) / len(finished)
    rest = [max(0.0, mean - elapsed) for elapsed in running]
    return max([(sum(rest) + queued * mean) / max(at_once, 1), *rest])


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def counts(lines: Sequence[Line]) -> str:
    """`3 of 16 done, 2 running, 11 queued`."""
    tally = Counter(line.status for line in lines)
    done = f"{tally.pop('done', 0)} of {len(lines)} done"
    return ", ".join([done, *(f"{count} {status}" for status, count in sorted(tally.items()))])


def table(lines: Sequence[Line], title: str, height: int | None = None) -> Group:
    """The runs as a table; where they are more than `height`, the ones that matter now and a count of the others.

    Where there is no room, the names are shortened, and never a number.
    """
    shown = list(range(len(lines)))
    if height is not None and len(lines) > height:
        urgent = sorted(shown, key=lambda n: (lines[n].status not in URGENT, lines[n].status != "queued"))
        shown = sorted(urgent[: max(height - 1, 1)])
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    # the one column that may be made narrower; its cells do not wrap
    grid.add_column("run", overflow="ellipsis")
    for heading in ("seed", "status", "epoch", "valid", "test", "time"):
        grid.add_column(heading, justify="left" if heading == "status" else "right", no_wrap=True)
    for line in (lines[number] for number in shown):
        bound = "" if line.max_epochs is None or line.max_epochs < 0 else f"/{line.max_epochs}"
        grid.add_row(
            Text(line.row, no_wrap=True),
            str(line.seed),
            Text(line.status, STYLES.get(line.status, "dim")),
            "" if line.epoch is None else f"{line.epoch:g}{bound}",
            *(
                "" if score is None else line.units.show(score)
                for score in (line.valid_score, line.test_score)
            ),
            "" if line.seconds is None else duration(line.seconds),
        )
    hidden = [line for number, line in enumerate(lines) if number not in set(shown)]
    tally = Counter(line.status for line in hidden)
    more = ", ".join(f"{count} {status}" for status, count in sorted(tally.items()))
    return Group(Text(title, "bold"), grid, *([Text(f"and {more}", "dim")] if hidden else []))


class Watch:
    """Shows a sweep while its jobs go on, as a context: in a terminal the table, elsewhere what changes."""

    def __init__(self, name: str, jobs: Sequence[Job], at_once: int, console: Console) -> None:
        self.name = name
        self.jobs = jobs
        self.at_once = at_once
        self.console = console
        self.live = Live(console=console, auto_refresh=False) if is_screen(console) else None
        self.shown = 0.0

    def __enter__(self) -> "Watch":
        if self.live:
            self.live.start()
        else:
            self._say(self.title())
        for job in self.jobs:
            if job.status == "failed":  # before this launch
                self.changed(job, [])
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.update(self.render(None))
            self.live.stop()
        else:
            self._say(self.title())

    def refresh(self) -> None:
        """Draw the table again, twice a second."""
        if self.live and time.monotonic() - self.shown > 0.5:
            self.live.update(self.render(self.console.height - 4), refresh=True)
            self.shown = time.monotonic()

    def changed(self, job: Job, lines: Sequence[str]) -> None:
        """Say that a job has another status, and show the `lines` of its log where it failed."""
        score = "" if job.test_score is None else f", test {job.units.show(job.test_score)}"
        if job.error:
            self.tell(job, job.error)
            for line in lines:
                self._say(f"    {line}", "dim")
        elif not self.live:
            took = (
                ""
                if job.seconds is None or job.status != "done"
                else f" in {duration(job.seconds)} with start-up"
            )
            self._say(f"{job.label} seed={job.seed}: {job.status}{took}{score}{self.left()}")
        self.shown = 0.0

    def tell(self, job: Job, text: str) -> None:
        """Say something of a job, in a terminal above the table."""
        self._say(f"{job.label} seed={job.seed}: {job.status}: {text}", STYLES.get(job.status, ""))

    def render(self, height: int | None) -> Group:
        lines = [table_line(job) for job in self.jobs]
        return Group(table(lines, self.title(), height), Text("time: of this launch, with start-up", "dim"))

    def title(self) -> str:
        return f"{self.name}: {counts([table_line(job) for job in self.jobs])}{self.left()}"

    def left(self) -> str:
        now = time.monotonic()
        seconds = seconds_left(
            [job.seconds for job in self.jobs if job.status == "done" and job.seconds is not None],
            [now - job.started for job in self.jobs if job.status == "running"],
            sum(job.status == "queued" for job in self.jobs),
            self.at_once,
        )
        return f"; about {duration(seconds)} left" if seconds else ""

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style), soft_wrap=True)


def table_line(job: Job) -> Line:
    running = job.status == "running"
    return Line(
        job.label,
        job.seed,
        job.status,
        job.epoch,
        job.config["trainer"].get("max_epochs") if running else None,
        job.valid_score,
        job.test_score,
        time.monotonic() - job.started if running else job.seconds,
        job.error,
        job.units,
    )
