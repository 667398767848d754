"""Locks on a run's folder: one process works in it at a time. No torch here."""

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import IO

LOCK = ".lock"  # flocked by the process that works on the run, until it ends by whatever end
CLAIM = ".claim"  # flocked by the launcher that has the run in hand


class Busy(ValueError):
    """Another process is working on the run. The process that finds it so ends with this exit code."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: try again later


def lock_folder(folder: Path, patience: float = 0.0) -> IO[str]:
    """Make the run's folder and hold its lock until the returned file is closed, by whatever end.

    Raises Busy where another process holds it for `patience` seconds, OSError where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock, until = take_lock(folder / LOCK), time.monotonic() + patience
        while lock is None and time.monotonic() < until:
            time.sleep(0.05)
            lock = take_lock(folder / LOCK)
    except OSError as error:
        way = "; a file is in the way, or a link that leads nowhere" if error.errno == errno.EEXIST else ""
        raise OSError(
            f"run_dir {folder} is not writable ({error.strerror}): give another folder{way}"
        ) from error
    if lock is None:
        raise Busy(f"another process is working on {folder}: wait for it, or give another run_dir")
    return lock


def require_held(lock: IO[str], folder: Path) -> None:
    """Raise OSError where this lock is no more the folder's: then another run may be at work under its name."""
    held = os.fstat(lock.fileno())
    try:
        there = (folder / LOCK).stat()
    except OSError:
        there = None
    if there is None or (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino):
        raise OSError(
            f"{folder} was moved or removed while the run was at work, which ends here: the same command with "
            "run_dir=FOLDER continues in the folder that was moved"
        )


def take_lock(path: Path) -> IO[str] | None:
    """The lock of a file, until the returned one is closed; None where another process has it."""
    file = path.open("a+")  # NFS wants a file that is read for a shared lock, written for an exclusive one
    while not is_taken(file, fcntl.LOCK_EX):
        if not is_taken(file, fcntl.LOCK_SH):
            file.close()
            return None
        fcntl.flock(file, fcntl.LOCK_UN)  # nobody works there: somebody looked in this very moment
        time.sleep(0.001)
    return file


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file. Those who look share a lock: they do not see one another."""
    try:
        with path.open() as file:
            return not is_taken(file, fcntl.LOCK_SH)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_at_work(folder: Path) -> bool:
    """Whether a process works on this folder's run, or a launcher has it in hand."""
    return is_locked(folder / LOCK) or is_locked(folder / CLAIM)


def is_taken(file: IO[str], kind: int) -> bool:
    """Whether this open file now has a lock of this kind, which it has unless another one is in the way."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
