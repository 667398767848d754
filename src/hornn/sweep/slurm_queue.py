"""Slurm's queue, asked by `squeue`: that answers at once, also on the many clusters that keep no accounts."""

import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from hornn.sweep.run_state import last_lines
from hornn.sweep.workers import CUT_OFF

LOOK = 5.0  # seconds between questions
GRACE = 15.0  # seconds that a shared folder may need to show what a job that has ended left there
# The user's jobs, the tasks of an array one by one. Slurm keeps a job that has ended for some minutes.
FIELDS = "--Format=JobArrayID:64,State:32,exit_code:32,Reason:128"
COMMAND = ("squeue", "--me", "--array", "--states=all", "--noheader", FIELDS)
AT_WORK = {
    *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"),
    *("RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"),
}
# Reasons why a job is pending that pass by themselves: other jobs come first.
USUAL = {"None", "Priority", "Resources", "JobArrayTaskLimit", "BeginTime", "Cleaning"}
COMPLETED, FAILED = "COMPLETED", "FAILED"
BY_ITSELF = {FAILED, "OUT_OF_MEMORY"}  # what is tried again ends likewise
UNKNOWN, GONE = "UNKNOWN", "GONE"  # ours
TERMINATED = "TERMINATED"  # ours: FAILED, because somebody sent it a signal


class End(NamedTuple):
    """How a job ended that left no result. by_itself: nobody and nothing else has ended it."""

    said: str
    by_itself: bool


def state_of(state: str, code: str) -> str:
    """The state of a job that Slurm gives this one and this exit code: a wait status, or `code:signal`."""
    numbers = code.split(":")
    if state != FAILED or not all(number.isdecimal() for number in numbers):
        return state
    returned, signal = map(int, numbers) if len(numbers) == 2 else divmod(int(code), 256)
    return TERMINATED if (-signal or returned) in CUT_OFF else state


class Queue:
    """What became of the jobs that submitit hands to Slurm, in the place of submitit's watcher, which asks `sacct`.

    folder: where submitit writes what a job says, with %j for its number.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.states: dict[str, str] = {}
        self.reasons: dict[str, str] = {}  # of the jobs that are pending
        self.changed: dict[str, float] = {}  # when a job got its state, on the monotonic clock
        self.asked = float("-inf")
        self.lock = threading.Lock()

    def watch(self) -> None:
        """Let submitit ask this queue."""
        from submitit.slurm.slurm import SlurmJob

        SlurmJob.watcher = self  # type: ignore[assignment]

    # -- what submitit asks ------------------------------------------------------------------------------------

    def register_job(self, job_id: str) -> None:
        with self.lock:
            self.states[job_id], self.changed[job_id] = UNKNOWN, time.monotonic()
            self.asked = float("-inf")

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        self._ask()
        return self.states[job_id]

    def is_done(self, job_id: str, mode: str = "standard") -> bool:
        return self.get_state(job_id) not in {UNKNOWN, *AT_WORK}

    # -- what we ask -------------------------------------------------------------------------------------------

    def end_of(self, number: int) -> End | None:
        """How this one of the jobs, in the order of submission, ended without a result; None: it may still have one."""
        job_id = self._id(number)
        if job_id is None or not self.is_done(job_id):
            return None
        state = self.states[job_id]
        if state in (GONE, COMPLETED):
            late = time.monotonic() > self.changed[job_id] + GRACE
            return End(f"Slurm's job {job_id} is gone and left no result", False) if late else None
        return End(f"Slurm's job {job_id}: {state}{self._last_words(job_id)}", state in BY_ITSELF)

    def reason_of(self, number: int) -> str | None:
        """Why Slurm does not start this one of the jobs, such as PartitionTimeLimit; None: other jobs come first."""
        job_id = self._id(number)
        if job_id is None or self.get_state(job_id) != "PENDING":
            return None
        reason = self.reasons.get(job_id, "None")
        return None if reason in USUAL else reason

    def wait(self) -> None:
        """Wait until all jobs have ended."""
        while not all(map(self.is_done, list(self.states))):
            time.sleep(1)

    def _id(self, number: int) -> str | None:
        """Slurm's name for this one of the jobs; None before they are submitted."""
        with self.lock:
            first = next(iter(self.states), None)
        return f"{first}_{number}" if f"{first}_{number}" in self.states else first

    def _last_words(self, job_id: str) -> str:
        log = Path(self.folder.replace("%j", job_id), f"{job_id}_0_log.err")
        try:
            return "".join(f": {line}" for line in last_lines(log, 1))
        except OSError:
            return ""

    def _ask(self) -> None:
        """Bring the states up to date; where Slurm does not answer, they stay."""
        with self.lock:
            if time.monotonic() < self.asked + LOOK or not self.states:
                return
            self.asked = time.monotonic()
            try:
                answer = subprocess.run(
                    COMMAND, capture_output=True, text=True, timeout=60, check=True
                ).stdout
            except (OSError, subprocess.SubprocessError):
                return
            rows = [row for line in answer.splitlines() if len(row := line.split(maxsplit=3)) == 4]
            found = {job_id: state_of(state, code) for job_id, state, code, _ in rows}
            self.reasons = {job_id: reason.strip() for job_id, _, _, reason in rows}
            for job_id, before in self.states.items():
                ended = before not in {UNKNOWN, *AT_WORK}
                state = found.get(job_id, before if ended else GONE)
                if state != before:
                    self.states[job_id], self.changed[job_id] = state, time.monotonic()
