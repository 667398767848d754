"""The table of a sweep whose jobs run under a launcher of Hydra's own: it is read from the folders of the runs."""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from rich.console import Console

from hornn.sweep.job import Job, blames_start
from hornn.sweep.outcome import tell_other_code
from hornn.sweep.progress import Line, Watch
from hornn.sweep.record import Record
from hornn.sweep.run_state import LOG, last_lines
from hornn.sweep.slurm_queue import End, Queue
from hornn.sweep.status import line_of
from hornn.sweep.workers import TAIL

WATCHED = "HORNN_WATCHED"  # tells jobs under which name they are shown, so that they need not show themselves
SINCE = "HORNN_SINCE"  # tells a job when its launch began; Slurm hands it on to a job that it starts again
LOOK = 1.0  # seconds between looks at the folders


class Onlooker:
    """Shows jobs while others run them, as a context: queued, running with its epoch, done, failed with its last lines.

    The jobs are on record, so that `src/sweep_status.py` knows of those that wait. `open_jobs` are those to be run, in
    their order. retry: try again also what diverged. queue: Slurm's, where Slurm runs the jobs.
    """

    def __init__(
        self,
        record: Record,
        jobs: Sequence[Job],
        console: Console,
        retry: bool,
        queue: Queue | None = None,
    ) -> None:
        self.record, self.jobs, self.retry = record, jobs, retry
        self.queue = queue
        self.reasons = set[str]()  # why jobs are not started, as was told
        self.watch = Watch(record.name, jobs, 1, console)
        self.open_jobs: list[Job] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> "Onlooker":
        os.environ[WATCHED], os.environ[SINCE] = self.record.name, str(self.jobs[0].launched)
        self.look(quiet=True)
        for job in self.jobs:
            # the job that it starts from may be done by now
            if job.status == "failed" and (self.retry or blames_start(job.error)):
                job.status, job.error, job.overwrite = "queued", None, job.overwrite or self.retry
        done = [job for job in self.jobs if job.status == "done"]
        tell_other_code(done, self.watch.console)
        waiting = [job for job in self.jobs if job.status not in ("done", "failed")]
        for job in waiting:
            job.end_with_its_start()
        told = done + [job for job in waiting if job.status == "failed"]
        self.record.merge([entry for job in told for entry in job.entries()])  # others may start from them
        self.open_jobs = [job for job in waiting if job.status != "failed" and not job.cut_off]
        self.watch.__enter__()
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self.thread.join()
        for name in (WATCHED, SINCE):
            os.environ.pop(name, None)
        try:
            self.look()
        except Exception:
            if error is None:
                raise
        finally:
            self.watch.__exit__(kind, error, trace)

    def look(self, quiet: bool = False) -> None:
        """Read how far each job is; quiet: of what has changed nothing is said."""
        entries = {(entry.run_dir, entry.name): entry for entry in self.record.read()}
        ends = {id(job): self.queue.end_of(place) for place, job in enumerate(self.open_jobs) if self.queue}
        for job in self.jobs:
            entry = entries.get((str(job.run_dir), job.name))
            if entry and self._take(job, line_of(entry, job.since), ends.get(id(job))) and not quiet:
                failed = job.status == "failed" and (job.run_dir / LOG).exists()
                self.watch.changed(job, last_lines(job.run_dir / LOG, TAIL) if failed else [])
        self._tell_reasons()
        self.watch.at_once = max(1, sum(job.status == "running" for job in self.jobs))
        self.watch.refresh()

    def _take(self, job: Job, line: Line, end: End | None) -> bool:
        """Give a job the status that its folder says it has, or else its end; whether it had another one."""
        before = job.status
        job.epoch, job.units, job.valid_score, job.test_score, job.error = (
            line.epoch,
            line.units,
            line.valid_score,
            line.test_score,
            line.error,
        )
        job.status = "queued" if line.status == "unfinished" else line.status
        if end and job.status not in ("done", "failed"):
            job.status, job.error = "failed" if end.by_itself else "unfinished", end.said
            job.cut_off = not end.by_itself
            if end.by_itself:
                self.record.merge(job.entries())
        if job.status == "running" != before:
            job.started = time.monotonic()
        elif before == "running" != job.status:
            job.seconds = time.monotonic() - job.started
        return job.status != before

    def _tell_reasons(self) -> None:
        """Say why Slurm does not start jobs, each reason once."""
        waiting: dict[str, list[Job]] = {}
        for place, job in enumerate(self.open_jobs):
            if self.queue and (reason := self.queue.reason_of(place)):
                waiting.setdefault(reason, []).append(job)
        for reason, (job, *others) in waiting.items():
            if reason not in self.reasons:
                them = f", and {len(others)} more" if others else ""
                self.watch.tell(job, f"Slurm does not start the job{them}: {reason}")
        self.reasons |= set(waiting)

    def _look_on(self) -> None:
        while not self.over.wait(LOOK):
            with suppress(Exception):  # a file may be whole at the next look; the last one raises what stays
                self.look()
