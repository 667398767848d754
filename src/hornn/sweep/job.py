"""One run of a sweep."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hornn.metrics import WORDS, Units
from hornn.result import Damaged, score_of, units_of
from hornn.run.identity import Identity
from hornn.sweep.record import Entry
from hornn.sweep.run_state import result_of

# Ends what is said of a job that was not run because another job failed.
BLAMED = ", which it starts from, failed"


@dataclass
class Job:
    """One run of a sweep and how far it is.

    rows: the rows of the table that it is the run of. overrides: what the command line of its process says. identity:
    who the run is. config: all that it was composed to.
    status: queued, running, elsewhere (another process works on it), done, failed; unfinished: a queue
    has dropped it. after: the jobs whose weights it starts from.
    """

    rows: list[str]
    overrides: list[str]
    identity: Identity
    config: dict[str, Any]
    place: int = 0  # of its overrides in the list that it was composed from
    gpus: int = 0  # that it needs
    status: str = "queued"
    error: str | None = None
    cut_off: bool = False  # somebody else has ended its process: the next launch continues it
    in_the_way: bool = False  # its folder holds the result of another run: to try again is no help
    overwrite: bool = False  # replace what a run before the launch left
    launched: float = 0.0  # when the launch began, by `moment_of_files`
    epoch: float | None = None
    valid_score: float | None = None
    test_score: float | None = None
    units: Units = WORDS  # in which they are shown
    started: float = 0.0  # when its process did, on the monotonic clock
    seconds: float | None = None  # that its process took in this launch
    claim: IO[str] | None = field(default=None, repr=False)
    after: "list[Job]" = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def seed(self) -> int:
        return self.identity.seed

    @property
    def run_dir(self) -> Path:
        return self.identity.folder

    @property
    def since(self) -> float:
        """The moment from which on a result counts as the outcome of this job."""
        return self.launched if self.overwrite else 0.0

    @property
    def label(self) -> str:
        return ", ".join(self.rows)

    def end_with_its_start(self) -> bool:
        """End it, too, where a job that it starts from was cut off or has failed; whether that is so."""
        if any(job.cut_off for job in self.after):
            self.cut_off = True
            return True
        for job in self.after:
            if job.status == "failed":
                self.status, self.error = "failed", f"{job.label}{BLAMED}"
                return True
        return False

    def result(self) -> dict[str, Any] | None:
        """The result that counts as its outcome, None: there is none yet. Errors: as in `result_of`."""
        return result_of(self.run_dir, self.name, self.seed, self.since)

    def result_to_keep(self) -> dict[str, Any] | None:
        """The same for a job that is tried again: a failure before the launch, or a damaged result, is to be replaced.

        What another launcher has tried again since the launch counts. Raises ValueError for another run's result.
        """
        try:
            result = self.result()
            if result is None or result["status"] == "completed":
                return result
            self.overwrite = True
            return result_of(self.run_dir, self.name, self.seed, self.launched)
        except Damaged:
            self.overwrite = True
            return None

    def take(self, result: Mapping[str, Any]) -> None:
        """Show what came out of the run."""
        self.epoch, self.units = result.get("epochs"), units_of(result)
        self.valid_score, self.test_score = (score_of(result, split) for split in ("valid", "test"))

    def entries(self) -> list[Entry]:
        """What the sweep's record says of this job."""
        status = "running" if self.status == "elsewhere" else self.status
        return [
            Entry(row, self.seed, str(self.run_dir), self.overrides, self.name, status, self.error)
            for row in self.rows
        ]


def blames_start(error: str | None) -> bool:
    """Whether a job is said to have failed only because a job that it starts from did."""
    return (error or "").endswith(BLAMED)
