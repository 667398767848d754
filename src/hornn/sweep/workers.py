"""Runs the jobs of a sweep, each as a process of its own, so many at a time, and keeps the record."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from hornn.command_line.ending import (
    BEGUN,
    IN_ROW,
    IN_RUN,
    IN_SWEEP,
    INTERRUPTED,
    LAUNCHED,
    RUNS_ON_GPU,
    TERMINATED,
    UNFINISHED,
    describe_system_error,
)
from hornn.result import Damaged
from hornn.run.identity import LAST
from hornn.run.lock import Busy
from hornn.sweep.gpus import Pool
from hornn.sweep.job import Job, blames_start
from hornn.sweep.record import Record
from hornn.sweep.run_state import (
    LOG,
    claim,
    is_claimed,
    is_running,
    is_since,
    last_lines,
    read_progress,
)

TICK = 0.2  # seconds between looks at the processes
LOOK = 1.0  # seconds between looks at runs that another process has
GRACE = 60.0  # seconds that an interrupted job has before it is killed
# Exit codes of a job that somebody else has ended, or its own trainer.max_time.
CUT_OFF = (-signal.SIGTERM, -signal.SIGINT, INTERRUPTED, TERMINATED, UNFINISHED)
COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")  # a job writes into a file
TAIL = 15  # lines of a failed job's log that are shown


class View(Protocol):
    """Where a person watches."""

    def changed(self, job: Job, lines: list[str]) -> None:
        """A job has another status; `lines`: the end of its log where it failed."""

    def refresh(self) -> None:
        """Some time has passed."""


@dataclass
class Worker:
    """A job at work: its process, where its part of the log begins, the GPUs it holds."""

    job: Job
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    log_start: int
    gpus: list[str]


class Workers:
    """Runs `jobs`, at most `limit` at a time, until each is done, failed or left to be continued.

    command: the words that start any job. pool: where jobs take their GPUs from. threads: of each process, where
    the user has not said; None: as many as torch chooses. stop_on_failure: end the others when one fails. retry: start
    failed jobs again.

    SIGINT or SIGTERM interrupts the processes and waits for them, a second one kills them; `signalled` then holds
    the signal's number.
    """

    def __init__(
        self,
        jobs: list[Job],
        command: list[str],
        record: Record,
        view: View,
        limit: int = 1,
        pool: Pool | None = None,
        threads: int | None = None,
        stop_on_failure: bool = False,
        retry: bool = False,
    ) -> None:
        self.jobs = jobs
        self.command = command
        self.record = record
        self.view = view
        self.limit = limit
        self.pool = pool or Pool([], 1)
        self.threads = threads
        self.stop_on_failure = stop_on_failure
        self.retry = retry
        self.at_work: list[Worker] = []
        self.signalled: int | None = None
        self.deadline: float | None = None  # when what still runs is killed; None: nothing is to end yet

    def look_up(self, supersede: bool = True) -> None:
        """Find what is done, has failed, or is at work elsewhere, and put it all on record, as `Record.merge` does."""
        for job in self.jobs:
            try:
                self._look_up(job)
                if job.status == "queued" and is_claimed(job.run_dir):
                    job.status = "elsewhere"
            except OSError as error:
                job.status, job.error = "failed", describe_system_error(error)
        self.record.merge([entry for job in self.jobs for entry in job.entries()], supersede)

    def run(self) -> None:
        # The children's standard input: the kernel closes our end of it when this process ends, however it does.
        watched, self.held = os.pipe()
        try:
            with self._signals():
                self._work(watched)
        finally:
            self._end_all()
            os.close(watched)
            os.close(self.held)

    def pass_on(self) -> None:
        """End this process as the signal that stopped the jobs would have, if there was one."""
        if self.signalled == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signalled:
            sys.exit(128 + self.signalled)

    def _work(self, watched: int) -> None:
        looked = 0.0
        while True:
            for worker in [worker for worker in self.at_work if worker.process.poll() is not None]:
                self._finish(worker)
            open_jobs = [
                job for job in self.jobs if job.status in ("queued", "elsewhere") and not job.cut_off
            ]
            if not self.at_work and (self.deadline or not open_jobs):
                return
            if self.signalled and not self.deadline:
                self._interrupt()
            if self.deadline and time.monotonic() > self.deadline:
                self._kill()
            if not self.deadline:
                look = time.monotonic() - looked > LOOK
                looked = time.monotonic() if look else looked
                for job in open_jobs:
                    if job.end_with_its_start():
                        if job.status == "failed":
                            self._become(job, "failed", job.error)
                    elif any(other.status != "done" for other in job.after):
                        continue
                    elif len(self.at_work) < self.limit and (look or job.status == "queued"):
                        self._try(job, watched)
            for worker in self.at_work:
                if progress := read_progress(worker.job.run_dir):
                    worker.job.epoch, worker.job.valid_score, worker.job.units = progress
            self.view.refresh()
            time.sleep(TICK)

    # -- one job ---------------------------------------------------------------------------------------------

    def _retries(self, job: Job) -> bool:
        """Whether no failure of a job counts; one that was waited for is another process's, and does."""
        return self.retry and job.status != "elsewhere"

    def _look_up(self, job: Job) -> None:
        """Give a job the status that its folder, or else the record, says it has."""
        retry = self._retries(job)
        try:
            result = job.result_to_keep() if retry else job.result()
        except ValueError as error:
            job.status, job.error = "failed", str(error)
            job.in_the_way = not isinstance(error, Damaged)
            return
        if result is not None and result["status"] == "completed":
            job.status = "done"
            job.take(result)
        elif result is not None:
            job.status, job.error = "failed", result.get("error") or result["status"]
        elif not retry and (not job.overwrite or job.status == "elsewhere"):
            run = (str(job.run_dir), job.name)
            for entry in self.record.read():
                failed = entry.status == "failed" and not blames_start(entry.error)
                if failed and (entry.run_dir, entry.name) == run:
                    job.status, job.error = "failed", entry.error

    def _try(self, job: Job, watched: int) -> None:
        """Start a job unless another process has it, has meanwhile ended it, or there is no GPU for it."""
        gpus = self.pool.take(job.gpus)
        if gpus is None:
            return
        log = None
        try:
            job.claim = claim(job.run_dir)
            if job.claim is None or is_running(job.run_dir):
                status, error = "elsewhere", None
            elif self._is_over(job):
                status, error = job.status, job.error
            else:
                log = (job.run_dir / LOG).open("ab")
        except OSError as caught:  # the folder of this job alone
            status, error = "failed", describe_system_error(caught)
        if log is not None:
            self._start(job, watched, gpus, log)
            return
        self._leave(job, status, error)
        self.pool.give_back(gpus)

    def _is_over(self, job: Job) -> bool:
        """Whether another process has ended the run by now; what came out there counts, whatever was asked here."""
        self._look_up(job)
        return job.status in ("done", "failed")

    def _start(self, job: Job, watched: int, gpus: list[str], log: IO[bytes]) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in COLOURS},
            LAUNCHED: "1",
            "PYTHONUNBUFFERED": "1",  # a killed process has written what it said
            IN_SWEEP: self.record.name,
            IN_ROW: job.rows[0],
            IN_RUN: job.name,
        }
        if self.threads is not None:
            environment.setdefault("OMP_NUM_THREADS", str(self.threads))
        if gpus or self.pool.hides:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        if gpus:
            environment[RUNS_ON_GPU] = str(self.pool.per_gpu)
        # What another launcher has begun since the launch is continued.
        job.overwrite = job.overwrite and not is_since(job.run_dir / LAST, job.launched)
        told = job.overwrite == job.config["overwrite"]
        again = [] if told else [f"overwrite={str(job.overwrite).lower()}"]
        BEGUN.set()
        process = subprocess.Popen(
            [*self.command, *job.overrides, *again],
            stdin=watched,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
        )
        self.at_work.append(Worker(job, process, log, log.tell(), gpus))
        job.started = time.monotonic()
        self._become(job, "running")

    def _finish(self, worker: Worker) -> None:
        """Take note of how a process ended."""
        job, code = worker.job, worker.process.returncode
        self.at_work.remove(worker)
        self.pool.give_back(worker.gpus)
        worker.log.close()
        try:
            lines = last_lines(job.run_dir / LOG, TAIL, worker.log_start)
        except OSError:  # the folder was moved or removed
            lines = []
        job.seconds = time.monotonic() - job.started
        last = lines[-1].removeprefix("error: ") if lines else ""
        try:
            result = job.result()
        except (OSError, ValueError) as error:
            said = describe_system_error(error) if isinstance(error, OSError) else str(error)
            self._leave(job, "failed", said, lines)
            return
        if result is not None and result["status"] == "completed":
            job.take(result)
            self._leave(job, "done")
        elif code == Busy.exit_code:
            self._leave(job, "elsewhere")
        elif self.deadline:
            self._leave(job, "queued")
        elif code in CUT_OFF:
            job.cut_off = True
            self._leave(job, "queued")
        else:
            self._leave(job, "failed", describe_failure(code, last, job), lines)
            if self.stop_on_failure:
                self._interrupt()

    def _leave(self, job: Job, status: str, error: str | None = None, lines: list[str] | None = None) -> None:
        """Give a job another status and, once that is on record, let others have it."""
        if status != job.status or status != "elsewhere":
            self._become(job, status, error or job.error, lines)
        if job.claim is not None:
            job.claim.close()
            job.claim = None

    def _become(
        self, job: Job, status: str, error: str | None = None, lines: list[str] | None = None
    ) -> None:
        job.status, job.error = status, error if status == "failed" else None
        self.record.merge(job.entries())
        self.view.changed(job, lines or [])

    # -- the end ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._heed) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heed(self, number: int, frame: Any) -> None:
        """Only take note, for a process may be about to start; a second signal means now."""
        if self.signalled is not None:
            self.deadline = time.monotonic()
        self.signalled = self.signalled or number

    def _interrupt(self) -> None:
        self.deadline = time.monotonic() + GRACE
        for worker in self.at_work:
            worker.process.send_signal(signal.SIGINT)

    def _kill(self) -> None:
        for worker in self.at_work:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.process.pid, signal.SIGKILL)

    def _end_all(self) -> None:
        """Leave no process behind: after an error of our own some are still at work."""
        self._interrupt()
        for worker in self.at_work:
            try:
                worker.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._kill()
                worker.process.wait()


def describe_failure(code: int, last: str, job: Job) -> str:
    """How a process failed, in one line."""
    if code == -signal.SIGKILL:
        return f"killed (signal 9): out of memory? {job.run_dir / LOG} has what it said"
    if code < 0:
        return f"killed (signal {-code}, {signal.strsignal(-code)})"
    if not last:
        return f"exit code {code} and nothing in {job.run_dir / LOG}: is the disk full?"
    return last if code else f"ended without a result: {last}"
