"""What a run's folder tells while the run is at work and afterwards, without torch."""

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from hornn.metrics import Units
from hornn.result import RESULT, read_result, score_of, units_of
from hornn.run.epochs import read_epochs
from hornn.run.lock import CLAIM, LOCK, is_locked, take_lock
from hornn.sweep.record import FOLDER

LOG = "train.log"
LAST_BYTES = 65536  # of a log that are looked at


class Progress(NamedTuple):
    """The last epoch that a run has finished."""

    epoch: float
    valid_score: float
    units: Units  # in which it is shown


def read_progress(run_dir: Path) -> Progress | None:
    """How far a run is; None before the first epoch's end, and where its last epoch has no score to read."""
    last = (read_epochs(run_dir) or [{}])[-1]
    epoch, valid_score = last.get("epoch"), score_of(last, "valid")
    return None if epoch is None or valid_score is None else Progress(epoch, valid_score, units_of(last))


def moment_of_files() -> float:
    """The present moment in seconds since the epoch, by the clock that dates files, which may be another machine's."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=FOLDER) as file:
        return os.fstat(file.fileno()).st_mtime


def is_since(path: Path, moment: float) -> bool:
    """Whether a file is there and was written at this moment of `moment_of_files` or later."""
    try:
        return path.stat().st_mtime >= moment
    except (FileNotFoundError, NotADirectoryError):
        return False


def result_of(run_dir: Path, name: str, seed: int, since: float = 0.0) -> dict[str, Any] | None:
    """The result of this very run, None where there is none yet that was written `since` this moment.

    Raises Damaged where it is damaged, another ValueError where the folder holds another run.
    """
    result = read_result(run_dir) if is_since(run_dir / RESULT, since) else None
    if result is not None and (result.get("name"), result.get("seed")) != (name, seed):
        raise ValueError(
            f"{run_dir} holds the result of run {result.get('name')}, seed {result.get('seed')}; "
            f"this is run {name}, seed {seed}: give another run_dir, or overwrite=true"
        )
    return result


def claim(run_dir: Path) -> IO[str] | None:
    """The right to work on a run until the returned file is closed, by whatever end; None: another has it."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        return take_lock(run_dir / CLAIM)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(run_dir / CLAIM)) from error


def is_claimed(run_dir: Path) -> bool:
    """Whether a launcher has this run in hand."""
    return is_locked(run_dir / CLAIM)


def is_running(run_dir: Path) -> bool:
    """Whether a process trains in this folder, started by whomever."""
    return is_locked(run_dir / LOCK)


def last_lines(log: Path, count: int, start: int = 0) -> list[str]:
    """The last lines of a log that are not blank, of what was written after byte `start`."""
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(start, end - LAST_BYTES))
        lines = file.read(LAST_BYTES).decode("utf-8", errors="replace").splitlines()
    return [line.rstrip() for line in lines if line.strip()][-count:]
