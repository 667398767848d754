"""The record of a sweep, `outputs/sweeps/<name>.json`: which run belongs to which row, and how far it got.

Several launchers may write it: each merges its own jobs into what is there, under a lock.
"""

import fcntl
import json
from collections.abc import Iterable
from pathlib import Path

from hornn.checks import require_file_name
from hornn.sweep.entry import RECORDINGS, VERSION, Entry, read_record
from hornn.writing import write_atomically

FOLDER = Path("outputs", "sweeps")


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


def _run(entry: Entry) -> tuple[str, int, str]:
    return entry.row, entry.seed, entry.name
