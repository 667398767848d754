"""`src/report.py` as a user calls it: what it says, and that it loads no torch."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def report(place: Any, *words: str, program: str | None = None) -> subprocess.CompletedProcess[str]:
    script = [str(ROOT / "src" / "report.py")] if program is None else ["-c", program]
    return subprocess.run(
        [sys.executable, *script, *words],
        cwd=place.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_report_loads_no_torch(filled: Any) -> None:
    program = "import sys, runpy; sys.argv = ['report.py']; runpy.run_path({!r}, run_name='__main__'); "
    program += "print(sorted({{'torch', 'lightning', 'hydra', 'omegaconf', 'wandb'}} & set(sys.modules)))"
    done = report(filled, program=program.format(str(ROOT / "src" / "report.py")))
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert {path.name for path in (filled.results / "report").iterdir()} == {
        *(f"{name}.{suffix}" for name in ("toy", "adhoc-12") for suffix in ("md", "csv", "tex", "json")),
        "index.html",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sweeps", "absent"), "error: there is no folder absent: give --sweeps FOLDER"),
        (
            ("--out", "sweeps/toy.yaml"),
            "error: cannot write to sweeps/toy.yaml (File exists): give --out FOLDER",
        ),
        (("--serve", "--port", "70000"), "error: --port must be from 0 to 65535, got 70000"),
        (("--serve", "--keep"), "error: argument --keep: not allowed with argument --serve"),
        (("--write",), "error: README.md, line 2: there is no sweep 'tpy'; there are: toy"),
    ],
)
def test_a_wrong_word_folder_or_file_is_one_line(place: Any, words: tuple[str, ...], message: str) -> None:
    (place.folder / "README.md").write_text("#\n<!-- claims: tpy -->\n<!-- end -->\n")
    done = report(place, *words)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_what_was_kept_is_said(place: Any) -> None:
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    done = report(place, "--keep")
    assert done.stdout == "outputs/tables/toy/rnn-seed1.json\n1 results kept in outputs/tables\n"


def test_a_damaged_result_is_said(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2).write_text("{")
    place.record({"row": "sum-2", "seed": 1, "status": "done", "result": place.result(1, 120.0, commit=7)})
    said = report(place).stdout.splitlines()
    assert said[0].startswith(
        "warning: outputs/runs/sum-2/aaaa/seed=1/result.json: not a whole result file: commit"
    )
    assert said[1].startswith(
        "warning: outputs/tables/toy/rnn-seed2.json: not a whole result file: Expecting"
    )
    assert said[2].endswith("rows measured")
    assert (
        "seed=1/result.json: not a whole result file: commit must be text or null, got 7"
        in report(place, "--keep").stdout
    )
