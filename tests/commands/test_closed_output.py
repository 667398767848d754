"""Standard output that is closed or full, and Ctrl-C: what a shell sees of each command."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.outcomes import result_of
from hornn.command_line import ending
from hornn.kernels import library

ROOT = Path(__file__).parents[2]
Pipe = Callable[..., tuple[int, str]]
pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def shell(line: str, folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """The exit code of the command, which `line` calls COMMAND, and all that was written to stderr."""
    done = subprocess.run(
        ["bash", "-c", line.replace("COMMAND", '"$@"'), "bash", sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stderr


GONE = "COMMAND | true; exit ${PIPESTATUS[0]}"
FULL = "COMMAND >/dev/full"
NOTE = "warning: standard output cannot be written (No space left on device): no more is shown, the command goes on\n"
LOST = "error: standard output cannot be written (No space left on device): send it elsewhere\n"


@pytest.mark.parametrize(
    ("line", "said", "unbuffered"),
    [
        ("COMMAND | head -1; exit ${PIPESTATUS[0]}", "", "1"),
        (GONE, "", ""),
        (FULL, NOTE, ""),
        ("COMMAND >&- 2>&-", "", ""),
        ("COMMAND >/dev/full 2>/dev/full", "", "1"),
    ],
)
def test_a_run_outlives_its_output(
    small: list[str], tmp_path: Path, line: str, said: str, unbuffered: str
) -> None:
    library.why_not()  # the run does not have to tell that it compiles them
    words = [str(ROOT / "src" / "train.py"), *small, f"run_dir={tmp_path / 'run'}"]
    assert shell(line, tmp_path, *words, PYTHONUNBUFFERED=unbuffered) == (0, said)
    assert result_of(tmp_path / "run")["epochs"] == 2


def test_a_refused_run_says_so_beside_a_closed_output(small: list[str], tmp_path: Path) -> None:
    words = [str(ROOT / "src" / "train.py"), *small, "model.order=0", f"run_dir={tmp_path / 'run'}"]
    assert shell(GONE, tmp_path, *words) == (2, "error: order must be a whole number >= 1, got 0\n")


SHOWING = {
    "report": [],
    "sweep_status": [],
    "parameters": [],
    "train": ["--help"],
    "tune": ["--help"],
    "evaluate": ["--help"],
    "score": ["--help"],
    "rescore": ["--help"],
    "generate": ["--cfg", "job"],
    "transcribe": ["--help"],
    "bench": ["--help"],
    "dashboard": ["--help"],
}


@pytest.mark.parametrize("entry", SHOWING)
def test_a_reader_may_go_away(tmp_path: Path, entry: str) -> None:
    (tmp_path / "sweeps").mkdir()
    assert shell(GONE, tmp_path, str(ROOT / "src" / f"{entry}.py"), *SHOWING[entry]) == (0, "")


@pytest.mark.parametrize("entry", ["sweep_status", "train", "generate"])
def test_what_was_asked_for_and_lost_is_an_error(tmp_path: Path, entry: str) -> None:
    assert shell(FULL, tmp_path, str(ROOT / "src" / f"{entry}.py"), *SHOWING[entry]) == (2, LOST)


@pytest.mark.parametrize("entry", ["evaluate", "score", "rescore", "generate", "transcribe"])
def test_what_is_asked_for_needs_an_open_output(tmp_path: Path, entry: str) -> None:
    words = ["checkpoint=x.ckpt", *(["nbest=x.tsv"] if entry == "rescore" else [])]
    refused = (2, "error: standard output is closed: send it elsewhere\n")
    assert shell("COMMAND >&-", tmp_path, str(ROOT / "src" / f"{entry}.py"), *words) == refused


def test_an_interruption_is_one_line(tmp_path: Path) -> None:
    """The command reads a pipe that nobody writes until Ctrl-C comes."""
    (tmp_path / "sweeps").mkdir()
    os.mkfifo(tmp_path / "sweeps/waits.yaml")
    started = subprocess.Popen(
        [sys.executable, str(ROOT / "src/report.py")],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a background shell ignores
    )
    time.sleep(1)
    started.send_signal(signal.SIGINT)
    assert (started.communicate(timeout=20)[1], started.returncode) == ("error: interrupted\n", 130)


def test_an_encoding_without_the_characters(small: list[str], tmp_path: Path, fresh_process: Any) -> None:
    run_dir = tmp_path / "r\N{LATIN SMALL LETTER U WITH DIAERESIS}n"
    code, out, err = fresh_process("train", *small, f"run_dir={run_dir}", PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert r"r\xfcn/result.json" in out
    assert result_of(run_dir)["epochs"] == 2


def test_a_locale_without_the_characters(small: list[str], tmp_path: Path) -> None:
    words = [
        str(ROOT / "src" / "train.py"),
        *small,
        f"run_dir={tmp_path}/r\N{LATIN SMALL LETTER U WITH DIAERESIS}n",
    ]
    code, err = shell("COMMAND", tmp_path, *words, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert code == 2
    assert err.endswith(": set PYTHONUTF8=1 or another LC_ALL, such as C.UTF-8\n")
    assert err.startswith("error: this locale cannot read run_dir=")
    assert err.count("\n") == 1


def test_an_interruption_of_the_imports_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ending, "import_module", interrupted)
    with pytest.raises(SystemExit) as end:
        ending.start("train")
    assert (end.value.code, capsys.readouterr().err) == (130, "error: interrupted\n")
