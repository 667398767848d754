"""What the record of a sweep holds, and how it is read. No torch here."""

from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from hornn.result import check_kinds, read_json, shorten
from hornn.shown import shown, shown_texts

VERSION = 2
OUTPUTS = "outputs"  # the folder, where a sweep is launched, that records and runs lie in
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
