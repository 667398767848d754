"""A copy of the checkout in which the commands of a page run, and the server that starts their processes."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from small_text import write_text

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("fork_server.py")
PARTS = ("src", "conf", "sweeps", "tests", "docs", "pyproject.toml", "Makefile", "README.md", ".ci")
RESULTS = ("hornn_table1", "thesis_table63")  # enough for a report
LIMIT = 120.0  # seconds that the commands of one block may take
Shell = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a running fork server."""
    path = tmp_path_factory.mktemp("server") / "socket"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, str(SERVER), "serve", str(path)], env=environment)
    while not path.exists():
        assert process.poll() is None, "the server did not start"
        time.sleep(0.05)
    yield path
    process.kill()
    process.wait()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout with a few results, and a `.venv` whose programs ask the server for processes."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "bench.md")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored, symlinks=True)
        elif (ROOT / part).is_file():
            shutil.copy(ROOT / part, tmp_path / part)
    for name in RESULTS:
        shutil.copytree(ROOT / "outputs" / "tables" / name, tmp_path / "outputs" / "tables" / name)
    shutil.copy(ROOT / "outputs" / "tables" / "bench.json", tmp_path / "outputs" / "tables")
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, words in {"python": "", "pytest": "-m pytest -p no:cacheprovider "}.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {SERVER} run {words}"$@"\n')
        program.chmod(0o755)
    time.sleep(0.01)
    (tmp_path / ".venv" / "stamp").touch()
    write_text(tmp_path)
    for name, split in {"a": "train", "b": "valid", "c": "test"}.items():
        shutil.copy(tmp_path / f"{split}.txt", tmp_path / f"{name}.txt")
    for name in ("FILE", "NBEST"):
        shutil.copy(tmp_path / "test.txt", tmp_path / name)
    return tmp_path


@pytest.fixture
def shell(checkout: Path, server: Path) -> Shell:
    """Run the lines of a script in the copy, each after the other, until one fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))}
    programs = checkout / ".venv" / "bin"
    environment |= {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), environment["PATH"]]),
        "PYTHONPATH": str(checkout / "src"),
        "PYTHON_SERVER": str(server),
        "PYTHON_CLIENT": str(programs / "python"),
        "OMP_NUM_THREADS": "1",
    }

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-evo", "pipefail", "-c", script],
            cwd=checkout,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )

    return run
