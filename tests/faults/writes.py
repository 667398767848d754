"""Faults at the n-th write of a process: it is killed there, its disk is full from there on, or each write is slow.

A write is whatever changes a disk: a file opened for writing, a `write` to it (of many the first, second, fourth,
eighth and so on), fsync, rename, removal, a new folder, a truncation. They are counted from 1 in the order in which the
process does them. No torch here.
"""

import builtins
import errno
import io
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink", "os.link")
KINDS = ("count", "kill", "full", "slow")
SLOW = 0.005  # seconds that a slow disk takes for a write


class Writes:
    """kind: what happens; at: the write at which it does; log: a file for the number of writes so far; below: the only
    folder whose writes count, if not all do."""

    def __init__(self, kind: str, at: int = 0, log: str | None = None, below: str = "/") -> None:
        assert kind in KINDS
        self.kind, self.at, self.below = kind, at, os.path.join(below, "")
        self.log = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT, 0o644)
        self.number = 0
        self.process = os.getpid()

    def counts(self, path: Any) -> bool:
        if isinstance(path, int) or os.getpid() != self.process:
            return False
        full = os.path.abspath(os.fsdecode(path))
        return full.startswith(self.below) and not full.startswith(("/dev/", "/proc/"))

    @property
    def over(self) -> bool:
        """Whether the disk is full."""
        return self.kind == "full" and self.number >= self.at

    def happen(self, half: Any = None) -> None:
        """One more write; `half`: what to do of it before the process is killed."""
        self.number += 1
        if self.log is not None:
            os.pwrite(self.log, b"%d\n" % self.number, 0)
        if self.kind == "kill" and self.number == self.at:
            if half is not None:
                half()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.over:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.kind == "slow":
            time.sleep(SLOW)


class CountedFile:
    """A file whose writes are counted, and else the file."""

    def __init__(self, file: Any, writes: Writes) -> None:
        self._file, self._writes, self._number = file, writes, 0

    def write(self, data: Any) -> int:
        self._number += 1
        if self._number.bit_count() == 1 or self._writes.over:
            self._writes.happen(lambda: (self._file.write(data[: len(data) // 2]), self._file.flush()))
        return int(self._file.write(data))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "CountedFile":
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __iter__(self) -> Any:
        return iter(self._file)


def install(kind: str, at: int = 0, log: str | None = None, below: str = "/") -> None:
    """Count the writes of this process from now on. There is no way back."""
    writes, opened, synced = Writes(kind, at, log, below), io.open, os.fsync
    locks = (".lock", ".claim")  # opened to be held, never written

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and writes.counts(arguments[0]):
            if kind == "full" and event in ("os.remove", "os.rmdir", "os.truncate"):
                return  # these work on a full disk
            writes.happen()

    def open_counted(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        counted = not {*mode}.isdisjoint("wax+") and writes.counts(file) and Path(file).name not in locks
        if counted and not (kind == "full" and os.path.exists(file)):
            writes.happen()
        found = opened(file, mode, *rest, **more)
        return CountedFile(found, writes) if counted else found

    def sync(number: int) -> None:
        writes.happen()
        synced(number)

    sys.addaudithook(watch)
    io.open = builtins.open = open_counted  # type: ignore[assignment]
    os.fsync = sync  # type: ignore[assignment]
