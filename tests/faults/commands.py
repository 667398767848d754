"""Commands as a shell sees them, run by a fork server; each is given a fault, signals or limits on its way."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from words import settled

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds after which a command hangs


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    late: bool  # it hung, and was killed
    memory_mb: float


class Running:
    """A command at work; `kill` sends a signal, `end` waits."""

    def __init__(self, server: "ForkServer", pid: int, out: Path, err: Path) -> None:
        self.server, self.pid, self.out, self.err = server, pid, out, err

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def end(self, seconds: float = PATIENCE) -> Ended:
        answer = self.server.ask({"wait": self.pid, "seconds": seconds})
        said = [path.read_text("utf-8", errors="replace") for path in (self.out, self.err)]
        return Ended(answer["code"], said[0], said[1], answer["late"], answer["memory_mb"])


class ForkServer:
    """Runs `src/<entry>.py` in children of a process that has imported everything. To be closed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the fork server has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def start(
        self,
        entry: str,
        *words: str,
        folder: Path | None = None,
        fault: Mapping[str, Any] | None = None,
        memory: int = 0,
        **environment: str,
    ) -> Running:
        """fault: arguments of `writes.install`; memory: bytes of address space beyond what the imports hold."""
        self.count += 1
        said = [self.folder / f"{self.count}.{stream}" for stream in ("out", "err")]
        answer = self.ask(
            {
                "entry": entry,
                "words": settled(words),
                "folder": str(folder or self.folder),
                "out": str(said[0]),
                "err": str(said[1]),
                "environment": environment,
                "fault": fault,
                "memory": memory,
            }
        )
        return Running(self, answer["pid"], *said)

    def run(self, entry: str, *words: str, seconds: float = PATIENCE, **options: Any) -> Ended:
        return self.start(entry, *words, **options).end(seconds)

    def count_writes(self, entry: str, *words: str, **options: Any) -> tuple[Ended, int]:
        """How the whole command ends, and how often it writes."""
        log = self.folder / "writes"
        log.write_text("0")
        ended = self.run(entry, *words, fault={"kind": "count", "log": str(log)}, **options)
        return ended, int(log.read_text())

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate()


def wait_for(path: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} does not come"
        time.sleep(0.005)
