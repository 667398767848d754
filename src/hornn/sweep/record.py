"""The record of a sweep, `outputs/sweeps/<name>.json`: which run belongs to which row, and how far it got.

Several launchers may write it: each merges its own jobs into what is there, under a lock.
"""

import fcntl
import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any

from hornn.result import check_kinds, read_json, write_atomically

SCHEMA_VERSION = 2
FOLDER = Path("outputs", "sweeps")
STATUSES = ("queued", "running", "done", "failed")

Entry = dict[str, Any]  # with these keys
ENTRY = {
    "row": (str,),
    "seed": (int,),
    "run_dir": (str,),
    "overrides": (list,),
    "name": (str,),
    "status": (str,),
    "error": (str, NoneType),
}


class Record:
    """The entries of one sweep. Raises ValueError for a name that is no file's name."""

    def __init__(self, name: str, folder: Path = FOLDER) -> None:
        if not re.fullmatch(r"[\w][\w.-]*", name):
            raise ValueError(f"sweep.name must be letters, digits, '.', '_' and '-', got {name!r}")
        self.name = name
        self.path = folder / f"{name}.json"

    def read(self) -> list[Entry]:
        """What is on record; nothing before the sweep's first launch.

        Raises ValueError naming the file where it is damaged or of another schema version.
        """
        if not (self.path.exists() or self.path.is_symlink()):
            return []
        try:
            record = read_json(self.path)
            check_kinds(record, {}, ("schema_version", "jobs"))
            version, jobs = record["schema_version"], record["jobs"]
            if version == SCHEMA_VERSION:
                check_kinds(record, {"jobs": (list,)}, ())
                for entry in jobs:
                    check_kinds(entry, ENTRY, ENTRY)
                    if entry["status"] not in STATUSES:
                        raise ValueError(
                            f"status must be one of {', '.join(STATUSES)}, got {entry['status']!r}"
                        )
        except ValueError as error:
            raise ValueError(
                f"{self.path} is damaged ({error}): remove it; the runs are kept in their folders, and the "
                "next launch of the sweep finds them again"
            ) from error
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"{self.path} has schema version {version}, this program reads {SCHEMA_VERSION}: remove it"
            )
        assert isinstance(jobs, list)
        return jobs

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
                jobs = {
                    run: entry for run, entry in kept.items() if run in new or run[:2] not in places
                } | new
                record = {"schema_version": SCHEMA_VERSION, "sweep": self.name, "jobs": list(jobs.values())}
                write_atomically(self.path, json.dumps(record, indent=1) + "\n")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error


def _run(entry: Entry) -> tuple[str, int, str]:
    return entry["row"], entry["seed"], entry["name"]
