"""The trials of one batch at work: ordinary runs, each watched for whether it is worth its next epoch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hornn.result import score_of
from hornn.run.epochs import read_epochs
from hornn.sweep.gpus import Pool
from hornn.sweep.job import Job
from hornn.sweep.record import Record
from hornn.sweep.run_state import result_of
from hornn.sweep.workers import GRACE, Workers


@dataclass
class Attempt:
    """A trial. position: how many were drawn before it. params: its constants as drawn. title: what a person reads."""

    position: int
    params: dict[str, Any]
    job: Job
    title: str
    scores: list[float] = field(default_factory=list)  # on validation after each epoch
    pruned_at: int | None = None  # the epoch after which it is to be ended
    told: float | None = None  # when its process was told to end, on the monotonic clock
    ended: bool = False
    last_lines: list[str] = field(default_factory=list)


class Trials(Workers):
    """Runs the trials, at most `limit` at a time, until each has ended.

    judge: the epoch after which validation scores say that a trial is to be ended, None: it may go on. conclude:
    takes each trial that has ended: completed, diverged or pruned. show: a line on those at work. A run that failed
    otherwise than by diverging is tried again; where it fails now, the others are interrupted and `fault` holds it.
    """

    def __init__(
        self,
        trials: list[Attempt],
        command: list[str],
        record: Record,
        judge: Callable[[Sequence[float]], int | None],
        conclude: Callable[[Attempt], None],
        show: Callable[[str], None],
        limit: int,
        pool: Pool,
        threads: int | None,
    ) -> None:
        super().__init__([trial.job for trial in trials], command, record, self, limit, pool, threads)
        self.trials, self.judge, self.conclude, self.show = trials, judge, conclude, show
        self.fault: Attempt | None = None

    def look_up(self, supersede: bool = True) -> None:
        super().look_up(supersede)
        for trial in self.trials:
            self._read(trial)
            if trial.pruned_at and trial.job.status == "queued":
                trial.job.cut_off = True  # an earlier search has not come to tell it
            self._end(trial)

    def _retries(self, job: Job) -> bool:
        return result_of(job.run_dir, job.name, job.seed) is None

    def changed(self, job: Job, lines: list[str]) -> None:
        trial = next(trial for trial in self.trials if trial.job is job)
        trial.last_lines = lines
        self._read(trial)
        self._end(trial)

    def refresh(self) -> None:
        """Read the epochs, end what is worth no further one, and say how far the others are."""
        working = {id(worker.job): worker for worker in self.at_work}
        parts = []
        for trial in self.trials:
            if worker := working.get(id(trial.job)):
                self._read(trial)
                shown = [worker.job.units.show(score) for score in trial.scores[-1:]]
                at = [f"epoch {len(trial.scores)}, validation {score}" for score in shown]
                parts.append(": ".join([trial.title, *at]))
                if trial.pruned_at and trial.told is None:
                    trial.told = time.monotonic()
                    worker.process.terminate()
                elif trial.told is not None and time.monotonic() > trial.told + GRACE:
                    worker.process.kill()
        self.show("; ".join(parts))

    def _read(self, trial: Attempt) -> None:
        epochs = read_epochs(trial.job.run_dir)
        scores = [score for epoch in epochs if (score := score_of(epoch, "valid")) is not None]
        if len(scores) > len(trial.scores):
            trial.scores = scores
            trial.pruned_at = self.judge(scores)

    def _end(self, trial: Attempt) -> None:
        """Hand on a trial that has ended, once."""
        job = trial.job
        if trial.ended or not (job.status in ("done", "failed") or job.cut_off):
            return
        trial.ended = True
        diverged = job.status == "failed" and result_of(job.run_dir, job.name, job.seed) is not None
        if trial.pruned_at or job.status == "done" or diverged:
            self.conclude(trial)
        elif self.fault is None:
            self.fault = trial
            self._interrupt()
