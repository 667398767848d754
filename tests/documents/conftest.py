"""A copy of the checkout in which the commands of a page run, and the server that starts their processes."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from documents.interpreter import DONE
from fork_server import write_program
from small_text import write_text
from speech.tiny import write_corpus

ROOT = Path(__file__).parents[2]
INTERPRETER = Path(__file__).with_name("interpreter.py")
PARTS = ("src", "conf", "sweeps", "tests", "docs", "pyproject.toml", "Makefile", "README.md", ".ci")
RESULTS = ("hornn_table1", "thesis_table63")  # enough for a report
LIMIT = 300.0  # seconds that the commands of one block may take
Shell = Callable[[str], subprocess.CompletedProcess[str]]
Python = Callable[[str, str], str | None]


@pytest.fixture
def checkout(tmp_path: Path, server: Path) -> Path:
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
        write_program(programs / name, server, words)
    time.sleep(0.01)
    (tmp_path / ".venv" / "stamp").touch()
    write_text(tmp_path)
    for name, split in {"a": "train", "b": "valid", "c": "test"}.items():
        shutil.copy(tmp_path / f"{split}.txt", tmp_path / f"{name}.txt")
    shutil.copy(tmp_path / "test.txt", tmp_path / "FILE")
    write_corpus(tmp_path / "corpora" / "tiny")
    (tmp_path / "NBEST").write_text("u1\ta b c\t-1.5\t-20\nu1\ta b\t-1.2\t-21\n")
    return tmp_path


@pytest.fixture
def environment(checkout: Path) -> dict[str, str]:
    """For commands in the copy."""
    given = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))}
    programs = checkout / ".venv" / "bin"
    return given | {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), given["PATH"]]),
        "PYTHONPATH": str(checkout / "src"),
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def shell(checkout: Path, environment: dict[str, str]) -> Shell:
    """Run the lines of a script in the copy, each after the other, until one fails."""

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


@pytest.fixture
def python(checkout: Path, environment: dict[str, str]) -> Iterator[Python]:
    """Run a block of Python in the copy, in the namespace of those before it; what it wrote if it failed, else None."""
    process = subprocess.Popen(
        [str(checkout / ".venv" / "bin" / "python"), str(INTERPRETER)],
        cwd=checkout,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def run(text: str, where: str) -> str | None:
        assert process.stdin and process.stdout  # noqa: PT018
        process.stdin.write(json.dumps({"text": text, "where": where}) + "\n")
        process.stdin.flush()
        lines: list[str] = []
        for line in process.stdout:
            if line.startswith(DONE):
                return None if line.split()[-1] == "ok" else "".join(lines)
            lines.append(line)
        return "".join([*lines, "the process ended"])

    yield run
    process.communicate(timeout=LIMIT)
