"""The record of a sweep, `outputs/sweeps/<name>.json`: which run belongs to which row, and how far it got.

Several launchers may write it: each merges its own jobs into what is there, under a lock. No torch here.
"""

import fcntl
import json
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from hornn.checks import require_file_name
from hornn.result import check_kinds, read_json, shorten
from hornn.shown import shown, shown_texts
from hornn.writing import write_atomically

VERSION = 2
OUTPUTS = "outputs"  # the folder, where a sweep is launched, that records and runs lie in
FOLDER = Path(OUTPUTS, "sweeps")
RECORDINGS = "recordings"  # a folder of outputs/tables, which has a folder for each sweep, too
STATUSES = ("queued", "running", "done", "failed")
KINDS: dict[str, tuple[type, ...]] = {
    "row": (str,),
    "seed": (int,),
    "run_dir": (str,),
    "overrides": (list,),
    "name": (str,),
    "status": (str,),
    "error": (str, NoneType),
}


class Entry(NamedTuple):
    """One run of a sweep: its row, who it is, how far it was when this was written, and why it failed."""

    row: str
    seed: int
    run_dir: str
    overrides: list[str]
    name: str
    status: str
    error: str | None

    def folder(self, results: Path) -> Path:
        """The run's folder: of one in `outputs`, the same in `results`, which may have another name or place by now."""
        if Path(self.run_dir).is_relative_to(OUTPUTS):
            return results / Path(self.run_dir).relative_to(OUTPUTS)
        return results.parent / self.run_dir


def names_on_record(folder: Path = FOLDER) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json"))


def require_record(name: str, folder: Path = FOLDER) -> None:
    """Raise ValueError unless there is a record of this sweep."""
    if name not in (names := names_on_record(folder)):
        raise ValueError(f"no sweep {name!r} on record; {folder} has: {', '.join(names) or 'none'}")


class Record:
    """The entries of one sweep. Raises ValueError for a name that is no file's, or is taken."""

    def __init__(self, name: str, folder: Path = FOLDER) -> None:
        require_file_name("sweep.name", name)
        if name == RECORDINGS:
            raise ValueError(f"sweep.name={name} is the name of a folder beside the tables: give another one")
        self.name = name
        self.path = folder / f"{name}.json"

    def read(self) -> list[Entry]:
        """What is on record. Errors: as in `read_record`."""
        return read_record(self.path)

    def merge(self, entries: Iterable[Entry], supersede: bool = False) -> None:
        """Put `entries` in the place of earlier entries of the same runs; the others stay.

        supersede: runs of another config for the same rows and seeds go, so that the latest recipe counts.
        Raises OSError naming the file where it cannot be written; what was there is then still there.
        """
        new = {_run(entry): entry for entry in entries}
        places = {(row, seed) for row, seed, _ in new} if supersede else set()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_name(f".{self.name}.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                kept = {_run(entry): entry for entry in self.read()}
                runs = {
                    run: entry for run, entry in kept.items() if run in new or run[:2] not in places
                } | new
                jobs = [entry._asdict() for entry in runs.values()]
                record = {"schema_version": VERSION, "sweep": self.name, "jobs": jobs}
                write_atomically(self.path, json.dumps(record, indent=1) + "\n")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error


def read_record(path: Path) -> list[Entry]:
    """The runs on record; none before the sweep's first launch.

    Raises ValueError naming the file where it is damaged or of another version, OSError where it cannot be read.
    """
    if not (path.exists() or path.is_symlink()):
        return []
    try:
        record = read_json(path)
        check_kinds(record, {}, ("schema_version", "jobs"))
        version = record["schema_version"]
        if version == VERSION:
            check_kinds(record, {"jobs": (list,)}, ())
            return [entry_of(job) for job in record["jobs"]]
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged ({error}): remove it; the runs are kept in their folders, and the "
            "next launch of the sweep finds them again"
        ) from error
    raise ValueError(f"{path} has schema version {version}, this program reads {VERSION}: remove it")


def entry_of(job: Any) -> Entry:
    """One entry of a record as it was read from the file, its texts fit to be shown.

    ValueError says what is wrong with it.
    """
    check_kinds(job, KINDS, KINDS)
    if not all(isinstance(word, str) for word in job["overrides"]):
        raise ValueError(f"overrides must list texts, got {shorten(job['overrides'])}")
    if shown(job["run_dir"]) != job["run_dir"]:
        raise ValueError(f"run_dir must be a path without control characters, got {job['run_dir']!r}")
    if job["status"] not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {job['status']!r}")
    return Entry(*(shown_texts(job[key]) for key in Entry._fields))._replace(row=shown(job["row"]))


def _run(entry: Entry) -> tuple[str, int, str]:
    return entry.row, entry.seed, entry.name
