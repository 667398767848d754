"""How far sweeps are, read from their records and the folders of their runs."""

from pathlib import Path

from rich.console import Console

from hornn.command_line.ending import describe_system_error
from hornn.metrics import WORDS
from hornn.reporting.running import has_begun
from hornn.result import score_of, units_of
from hornn.run.lock import is_at_work
from hornn.shown import is_screen, shown
from hornn.sweep.progress import Line, counts, table
from hornn.sweep.record import FOLDER, Entry, Record, names_on_record, require_record
from hornn.sweep.run_state import read_progress, result_of

UNLIMITED = 10_000  # columns, of a pipe or a file


def show(name: str | None = None, folder: Path = FOLDER, console: Console | None = None) -> None:
    """Print the runs of a sweep, or one line for each sweep on record.

    Raises ValueError for a name that is not on record, ValueError or OSError for its record where that cannot be
    used; in the list the line of such a sweep says so.
    """
    console = console or Console()
    if not is_screen(console):
        console.width = UNLIMITED
    if name is None:
        require_outputs(folder)
        names = names_on_record(folder)
        for known in names:
            console.print(
                shown(f"{known}: {summary(known, folder)}"),
                highlight=False,
                soft_wrap=True,
                markup=False,
            )
        if not names:
            console.print(f"no sweep has been launched yet: {folder} has none")
        return
    require_record(name, folder)
    lines = lines_of(Record(name, folder))
    console.print(table(lines, f"{name}: {counts(lines)}"))
    console.print("time: of all starts of a run, without start-up", style="dim", highlight=False)
    for line in lines:
        if line.error:
            text = f"{line.row} seed={line.seed}: {line.error}"
            console.print(shown(text), highlight=False, soft_wrap=True, markup=False)


def require_outputs(folder: Path) -> None:
    """Raise ValueError where a folder lies behind a link that leads nowhere, as to a disk that is not mounted."""
    for path in (folder, *folder.parents):
        if path.is_symlink() and not path.exists():
            raise ValueError(
                f"{path} is a link to {path.readlink()}, which is not there: mount it, or move the link"
            )


def summary(name: str, folder: Path) -> str:
    """How many runs of a sweep are how far, or what is wrong with its record."""
    try:
        return counts(lines_of(Record(name, folder)))
    except OSError as error:
        return describe_system_error(error)
    except ValueError as error:
        return str(error)


def lines_of(record: Record) -> list[Line]:
    return [line_of(entry) for entry in record.read()]


def line_of(entry: Entry, since: float = 0.0) -> Line:
    """What the run's folder says; where it says nothing, the record. Begun and not at work is `unfinished`.

    Results from before the moment `since` do not count.
    """
    run_dir = Path(entry.run_dir)
    epoch, valid, units = read_progress(run_dir) or (None, None, WORDS)
    line = Line(entry.row, entry.seed, "queued", epoch, None, valid, units=units)
    try:
        result = result_of(run_dir, entry.name, entry.seed, since)
    except OSError as error:
        return line._replace(status="failed", error=describe_system_error(error))
    except ValueError as error:
        return line._replace(status="failed", error=str(error))
    if is_at_work(run_dir):
        return line._replace(status="running")
    if result is not None and result["status"] == "completed":
        valid, test = (score_of(result, split) for split in ("valid", "test"))
        taken, units = result.get("wall_seconds"), units_of(result)
        return line._replace(status="done", valid_score=valid, test_score=test, seconds=taken, units=units)
    if result is not None:
        return line._replace(status="failed", error=result.get("error") or result["status"])
    if entry.status == "failed":
        return line._replace(status="failed", error=entry.error)
    return line._replace(status="unfinished" if has_begun(run_dir) else "queued")
