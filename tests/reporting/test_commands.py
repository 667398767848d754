"""`src/report.py` as a user calls it: what it says, and that it loads no torch."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.commands import write_table_files
from hornn.reporting.inheritance import load_sweep
from reporting.place import SWEEP, table_of

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
        (
            ("--results", "absent"),
            "error: --results=absent is no folder: give one that holds tables, sweeps or runs",
        ),
        (("--sweeps", "absent"), "error: there is no folder absent: give --sweeps FOLDER"),
        (
            ("--out", "sweeps/toy.yaml"),
            "error: cannot write to sweeps/toy.yaml (File exists): give --out FOLDER",
        ),
        (("--serve", "--port", "70000"), "error: --port must be from 0 to 65535, got 70000"),
        (
            ("--keep", "--out", "x"),
            "error: --out=x is where the report goes, and --keep and --write write none",
        ),
        (("--write", "--port", "0"), "error: --port=0 is of the server: give --serve, or leave it out"),
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


def test_a_copied_folder_of_results_is_read_under_any_name(place: Any) -> None:
    """Its record names the runs by where they were trained; nothing is read there."""
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    place.record({"row": "own", "seed": 1, "status": "done", "result": place.result(1, 99.0)}, sweep="mine")
    place.results.rename(place.folder / "from-the-server")
    done = report(place, "--results", "from-the-server", "--out", "shown")
    assert done.stdout == "shown/index.html: 2 tables, 2 of 5 rows measured\n"


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


@pytest.fixture
def own(place: Any) -> Path:
    """A folder of somebody's own with a model and a table, and another table of that model among the others."""
    folder: Path = place.folder / "own"
    for name in ("model", "sweeps"):
        (folder / name).mkdir(parents=True)
    (folder / "model" / "mine.yaml").write_text("{_target_: mine.Cell, hidden_size: 400}")
    text = SWEEP.replace("model=rnn", "model=mine")
    (folder / "sweeps" / "theirs.yaml").write_text(text.replace("name: toy", "name: theirs"))
    place.write_sweep("mixed", text.replace("name: toy", "name: mixed"))
    return folder


def test_a_table_that_cannot_be_read_is_left_out_aloud(place: Any, own: Path) -> None:
    done = {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)}
    place.record(done, sweep="toy")
    place.record(done | {"seed": 2}, sweep="mixed")
    said = report(place)
    assert said.returncode == 0, said.stderr
    warning, summary = said.stdout.splitlines()
    assert warning == (
        "warning: left out: sweeps/mixed.yaml: row 'rnn': unknown model 'mine'; it is one of: hornn, hornn_max, rnn; "
        "a choice of your own needs --config-dir FOLDER"
    )
    assert summary.endswith("1 tables, 1 of 4 rows measured")
    assert "left out: sweeps/mixed.yaml" in (place.results / "report" / "index.html").read_text()
    kept = report(place, "--keep")
    assert kept.returncode == 2
    assert kept.stderr.startswith(
        "error: 1 results kept in outputs/tables, none of mixed: sweeps/mixed.yaml: row"
    )
    assert (place.results / "tables" / "toy" / "rnn-seed1.json").is_file()
    assert report(place, "--write").stderr.startswith(
        "error: sweeps/mixed.yaml: row 'rnn': unknown model 'mine'"
    )


def test_models_and_tables_of_a_folder_of_one_s_own_are_shown(place: Any, own: Path) -> None:
    result = place.result(1, 120.0, choices={"model": "mine"}, config={"model": {"hidden_size": 300}})
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result}, sweep="theirs")
    said = report(place, "--config-dir", "own")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.endswith(": 3 tables, 2 of 12 rows measured\n")
    text = (place.results / "report" / "theirs.md").read_text()
    assert "departs from the recipe: model.hidden_size=300, not 400" in text, "its recipe is known"
    assert "`python src/train.py --config-dir=own -m sweeps=theirs` runs what is missing" in text
    assert report(place, "--keep", "--config-dir", "own").returncode == 0
    assert (place.results / "tables" / "theirs" / "rnn-seed1.json").is_file()
    assert report(place, "--config-dir", "absent").stderr == (
        "error: there is no folder absent: give --config-dir FOLDER\n"
    )


@pytest.mark.parametrize("absolute", [False, True])
def test_who_works_in_a_folder_of_one_s_own_sees_each_table_once(
    place: Any, own: Path, absolute: bool
) -> None:
    (own / "model").rename(place.folder / "model")
    said = report(place, "--config-dir", str(place.folder) if absolute else ".")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "outputs/report/index.html: 2 tables, 0 of 8 rows measured\n"


def test_a_table_of_one_s_own_does_not_take_a_name(place: Any, own: Path) -> None:
    (own / "sweeps" / "toy.yaml").write_text(SWEEP)
    said = report(place, "--config-dir", "own").stdout
    assert (
        "warning: left out: own/sweeps/toy.yaml has the name of sweeps/toy.yaml: give it another one\n"
        in said
    )
    (own / "model" / "hornn.yaml").write_text("{_target_: mine.Cell, hidden_size: 400}")
    said = report(place, "--config-dir", "own").stdout
    names = f"{place.folder}/conf/model/hornn.yaml and own/model/hornn.yaml"
    assert f"row 'sum-2': {names} have one name and are not the same: give yours another name\n" in said


def test_a_sweep_file_of_one_s_own_extends_one_of_the_program(place: Any, own: Path) -> None:
    path = own / "sweeps" / "theirs.yaml"
    path.write_text("defaults: [hornn_table3]\nsweep: {name: theirs}\n")
    assert load_sweep(path)["sweep"]["metric"] == "test_ppl"


def test_a_report_that_cannot_be_written_leaves_the_earlier_one(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, also where the disk is full in the middle of a file."""
    out = filled.folder / "report"
    out.mkdir()
    tables = [table_of(filled)]
    (path, *_) = write_table_files(tables, out)
    before = path.read_text()
    filled.commit("rnn", 1, 90.0)

    def fail(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("hornn.writing.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_table_files([table_of(filled)], out)
    assert path.read_text() == before
    assert sorted(each.suffix for each in out.iterdir()) == [".csv", ".json", ".md", ".tex"]
