"""Files that are written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

FULL = (errno.ENOSPC, errno.EDQUOT)  # a disk, or a user's part of it
LIMITS = {  # of a process, and how they are raised
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}


@contextmanager
def replacing(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """A new file beside `path` that takes its place when the block ends: a reader sees all or nothing.

    A block that fails leaves what was there, and no other trace. FileNotFoundError where there is no such folder.
    """
    require_folder(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open(mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Raise FileNotFoundError unless the folder that a file is to lie in is there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist: make it, or give another path")


def write_atomically(path: Path, text: str | Iterable[str]) -> None:
    """Write `text`, whole or line by line, as `replacing` does. Raises OSError, which names `path`, where it cannot."""
    require_folder(path)
    try:
        with replacing(path, "w") as file:
            file.writelines([text] if isinstance(text, str) else text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_writable(path: Path, remedy: str = "give another path") -> None:
    """Raise OSError, which names `path`, unless `write_atomically` can write there; nothing that is there changes."""
    trial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise OSError(f"cannot write {path} ({error.strerror}): {remedy}") from error
