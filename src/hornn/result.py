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


def write_result(run_dir: Path, result: dict[str, Any]) -> None:
    """Write result.json: `schema_version`, then `result` as `hornn.run.train` or `hornn.run.count` built it.

    Numbers that are not finite become null: JSON has none.
    """
    text = json.dumps({"schema_version": SCHEMA_VERSION, **finite(result)}, indent=2, allow_nan=False)
    write_atomically(run_dir / NAME, text + "\n")


def read_result(run_dir: Path) -> dict[str, Any] | None:
    """The result of a run, or None where there is none yet. Errors: those of `read_result_file`."""
    path = run_dir / NAME
    return read_result_file(path) if path.exists() else None


def read_result_file(path: Path) -> dict[str, Any]:
    """The result that a file holds. ValueError where it is damaged or of another schema version."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        version = result["schema_version"]
        if version == SCHEMA_VERSION and result["status"] not in STATUSES:
            raise ValueError(f"its status is {result['status']!r}")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
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
