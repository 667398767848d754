import fcntl
import gc
import importlib
import io
import os
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from hydra.core.hydra_config import HydraConfig
from hypothesis import settings

import fork_server
from fork_server import write_program
from order import deal
from outcome import Outcome
from small_text import SMALL, write_text
from words import settled

ROOT = Path(__file__).parents[1]
# What a test may be skipped for -> the variable that says it is there, so that a skip is a failure.
REQUIRED = {
    "corpus": "HORNN_REQUIRE_CORPORA",
    "reference": "HORNN_REQUIRE_CORPORA",
    "browser": "HORNN_REQUIRE_BROWSER",
}
# Properties are tried on the same examples at each call.
settings.register_profile("same", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("same")


@pytest.hookimpl(tryfirst=True)  # before pytest picks by `-m`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `faults` or `thorough` unless `-m` speaks of it; begin with what is marked `slow`.

    Cases that `each` skips are `thorough`; none is skipped where `-k` picks cases by their names.
    """
    seen = Counter[str]()
    for item in [] if config.getoption("keyword") else items:
        if marker := item.get_closest_marker("each"):
            test = item.nodeid.partition("[")[0]
            if seen[test] % marker.args[0]:
                item.add_marker("thorough")
            seen[test] += 1
    asked = str(config.getoption("markexpr"))
    marks = [mark for mark in ("faults", "thorough") if mark not in asked]
    left_out = {item for item in items if any(map(item.get_closest_marker, marks))}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    kept = [item for item in items if item not in left_out]
    items[:] = deal(kept, getattr(config, "workerinput", {}).get("workercount", 1))


def pytest_collection_finish() -> None:
    """Let no collection of garbage look through what stays: the libraries, and thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def forget_hydra() -> Generator[None]:
    """What a command run in this process told Hydra of itself is no part of the next test."""
    yield
    HydraConfig.instance().cfg = None


@pytest.fixture(scope="session")
def command() -> Callable[..., Outcome]:
    """`command("train", "key=value", ...)` runs `src/train.py` as `__main__` of this process, in under a second."""
    importlib.import_module("hornn.run.train")
    gc.freeze()  # what all commands share; to look through it after each of them would take as long as most commands

    def run(entry: str, *words: str) -> Outcome:
        out, err, code = io.StringIO(), io.StringIO(), 0
        environment = {key: value for key, value in os.environ.items() if key != "HYDRA_FULL_ERROR"}
        with (
            patch.dict(os.environ, environment, clear=True),
            patch.object(sys, "argv", [f"src/{entry}.py", *settled(words)]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                runpy.run_path(str(ROOT / "src" / f"{entry}.py"), run_name="__main__")
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 0
        gc.collect()  # closes the lock of a run that failed, as the end of its process would
        return Outcome(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a running fork server, which all test processes share and which ends with the last of them."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "server"
    folder.mkdir(exist_ok=True)
    path, users = folder / "socket", folder / "users"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with users.open("a") as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        with (folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process starts it
            if not path.exists():
                words = [sys.executable, fork_server.__file__, "serve", str(path), str(users)]
                process = subprocess.Popen(words, env=environment)
                while not path.exists():
                    assert process.poll() is None, "the server did not start"
                    time.sleep(0.05)
        yield path


@pytest.fixture(scope="session")
def forked_python(server: Path) -> str:
    """A program that is Python without the seconds of importing: each of its processes is forked off the server."""
    program = server.with_name("python")
    write_program(program, server)
    return str(program)


def processes(python: str) -> Callable[..., Outcome]:
    """`run("train", "key=value", ..., NAME="value")` runs `src/train.py` without a terminal; NAME=None unsets."""

    def run(entry: str, *words: str, **environment: str | None) -> Outcome:
        merged = {**os.environ, **environment}
        done = subprocess.run(
            [python, str(ROOT / "src" / f"{entry}.py"), *settled(words)],
            env={key: value for key, value in merged.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def process(forked_python: str) -> Callable[..., Outcome]:
    """The same in a process of its own, in a second."""
    return processes(forked_python)


@pytest.fixture(scope="session")
def fresh_process() -> Callable[..., Outcome]:
    """The same from nothing, in six seconds: where a process hands on open files or tells its number."""
    return processes(sys.executable)


@pytest.fixture
def quick_jobs(forked_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process takes for its Python is `forked_python`, and so for the jobs that it starts."""
    monkeypatch.setattr(sys, "executable", forked_python)


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return write_text(tmp_path)


@pytest.fixture
def small(text: list[str]) -> list[str]:
    """Overrides for a run of two epochs on that corpus, in half a second."""
    return [*text, *SMALL]


@pytest.fixture(scope="session")
def corpus_root() -> Callable[[str], str]:
    """The folder of real corpora, if it holds the given file; else the test is skipped."""

    def find(name: str) -> str:
        root = os.environ.get("HORNN_DATA")
        if not root or not Path(root, name).is_file():
            pytest.skip(f"needs {name} in the folder that HORNN_DATA names")
        return root

    return find


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that was skipped for want of what a variable of `REQUIRED` promises has failed."""
    report = yield
    promised = [marker for marker, variable in REQUIRED.items() if os.environ.get(variable)]
    if report.skipped and any(item.get_closest_marker(marker) for marker in promised):
        report.outcome = "failed"
    return report
