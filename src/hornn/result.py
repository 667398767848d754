"""The result of a run, `result.json`: what was run, on what, and what came out. No torch here."""

import json
import os
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 2
NAME = "result.json"
STATUSES = ("completed", "diverged")


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to a temporary file beside `path`, then move it there: a reader sees all or nothing.

    Raises OSError, which names `path`, where that cannot be.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_writable(path: Path) -> None:
    """Raise OSError, which names `path`, unless `write_atomically` can write there; nothing that is there changes."""
    trial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise OSError(f"cannot write {path} ({error.strerror}): give another path") from error


def write_between(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of `name` in a Markdown file. ValueError where it or they are missing."""
    begin, end = (f"<!-- {name}: {which} -->" for which in ("begin", "end"))
    if not path.is_file():
        raise ValueError(f"no file {path}: give a Markdown file with the lines {begin!r} and {end!r}")
    before, found_begin, rest = path.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{path} has no place for the {name}: put the lines {begin!r} and {end!r} there")
    write_atomically(path, f"{before}{begin}\n{text}\n{end}{after}")


def write_result(run_dir: Path, result: dict[str, Any]) -> None:
    """Write result.json: `schema_version`, then `result` as `hornn.run.train` or `hornn.run.count` built it.

    Numbers that are not finite become null: JSON has none.
    """
    text = json.dumps({"schema_version": SCHEMA_VERSION, **finite(result)}, indent=2, allow_nan=False)
    write_atomically(run_dir / NAME, text + "\n")


def read_result(run_dir: Path) -> dict[str, Any] | None:
    """The result of a run, or None where there is none yet.

    Raises ValueError naming the file where it is damaged or of another schema version.
    """
    path = run_dir / NAME
    if not path.exists():
        return None
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        version = result["schema_version"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it, or give another run_dir") from error
    if version != SCHEMA_VERSION:
        raise ValueError(f"{path} has schema version {version}, this program reads {SCHEMA_VERSION}")
    assert isinstance(result, dict)
    return result


def finite(value: Any) -> Any:
    """The same nested value with None in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
