"""The list of sweeps."""

import fcntl
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hornn.result import write_result
from hornn.sweep.record import Record
from hornn.sweep.run_state import LOCK, claim
from hornn.sweep.status import show
from sweep.entries import entry
from sweep.mini import ROOT


def shown(*arguments: Any) -> list[str]:
    console = Console(record=True, width=100, file=io.StringIO())
    show(*arguments, console=console)
    return console.export_text().splitlines()


def test_the_status_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown() == ["no sweep has been launched yet: outputs/sweeps has none"]
    rows = ("done", "diverged", "at_work", "by_hand", "cut", "failed", "waiting", "damaged")
    record = {row: entry(row, status="failed" if row == "failed" else "running") for row in rows}
    Record("mini").merge(record.values())
    folders = {row: Path(one.run_dir) for row, one in record.items()}
    for folder in folders.values():
        folder.mkdir(parents=True)
    result = {"name": "aaaaaaaaaa", "seed": 1, "valid_ppl": 90.0, "test_ppl": 80.0}
    write_result(folders["done"], {**result, "status": "completed", "wall_seconds": 3725.4})
    write_result(folders["diverged"], {**result, "status": "diverged", "error": "infinite"})
    (folders["damaged"] / "result.json").write_text("{")
    for row in ("at_work", "by_hand", "cut"):
        (folders[row] / "metrics.csv").write_text("epoch,valid_ppl\n3,123.456\n")
    held = claim(folders["at_work"])
    by_hand = (folders["by_hand"] / LOCK).open("w")
    fcntl.flock(by_hand, fcntl.LOCK_EX)
    assert shown() == ["mini: 1 of 8 done, 3 failed, 1 queued, 2 running, 1 unfinished"]
    lines = [line.split() for line in shown("mini")]
    assert lines[2:10] == [
        ["done", "1", "done", "90.00", "80.00", "1:02:05"],
        ["diverged", "1", "failed"],
        ["at_work", "1", "running", "3", "123.46"],
        ["by_hand", "1", "running", "3", "123.46"],
        ["cut", "1", "unfinished", "3", "123.46"],
        ["failed", "1", "failed"],
        ["waiting", "1", "queued"],
        ["damaged", "1", "failed"],
    ]
    assert [" ".join(line) for line in lines[10:13]] == [
        "time: of all starts of a run, without start-up",
        "diverged seed=1: infinite",
        "failed seed=1: no luck",
    ]
    assert "result.json is damaged" in " ".join(lines[13])
    assert held is not None
    held.close()
    by_hand.close()
    with pytest.raises(ValueError, match="no sweep 'maxi' on record; outputs/sweeps has: mini"):
        shown("maxi")


def test_a_record_that_cannot_be_used_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("outputs", "sweeps")
    Record("whole", folder).merge([entry("a")])
    (folder / "folder.json").mkdir()
    (folder / "looped.json").symlink_to("looped.json")
    for name, change in {
        "number": {"run_dir": 7},
        "listed": {"row": ["a"]},
        "alien": {"status": "lost"},
    }.items():
        text = json.dumps({"schema_version": 2, "jobs": [{**entry("a")._asdict(), **change}]})
        (folder / f"{name}.json").write_text(text)
    (folder / "nested.json").write_text("[" * 100_000)
    (folder / "copy (1).json").write_text(Record("whole", folder).path.read_text())
    reasons = {
        "alien": "is damaged (status must be one of queued, running, done, failed, got 'lost'): remove it;",
        "copy (1)": "sweep.name must be letters, digits, '.', '_' and '-', got 'copy (1)'",
        "folder": "Is a directory",
        "listed": 'is damaged (row must be text, got ["a"]): remove it;',
        "looped": "Too many levels of symbolic links",
        "nested": "is damaged (its brackets are nested too deeply): remove it;",
        "number": "is damaged (run_dir must be text, got 7): remove it;",
        "whole": "0 of 1 done, 1 queued",
    }
    for line, (name, reason) in zip(shown(), reasons.items(), strict=True):
        assert line.startswith(f"{name}: ")
        assert reason in line
    with pytest.raises(ValueError, match="run_dir must be text, got 7"):
        shown("number")


def test_a_result_that_cannot_be_read_is_that_run_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Record("mini").merge([entry("a"), entry("b")])
    Path(entry("a").run_dir, "result.json").mkdir(parents=True)
    assert shown()[0] == "mini: 0 of 2 done, 1 failed, 1 queued"
    assert "a seed=1: outputs/a/aaaaaaaaaa/seed=1/result.json: Is a directory" in "\n".join(shown("mini"))


def test_sweeps_behind_a_link_that_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("outputs").symlink_to("/nowhere/outputs")
    with pytest.raises(
        ValueError, match=r"^outputs is a link to /nowhere/outputs, which is not there: mount it"
    ):
        show()


def test_names_and_numbers_are_whole_in_a_pipe_and_numbers_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = entry("a-row-with-a-long-name " * 4)
    Record("mini").merge([one])
    folder = Path(one.run_dir)
    folder.mkdir(parents=True)
    scores = {"valid_ppl": 28612.34, "test_ppl": 28612.56, "wall_seconds": 3725.4}
    write_result(folder, {"name": one.name, "seed": 1, "status": "completed", **scores})
    numbers = ["done", "28612.34", "28612.56", "1:02:05"]
    for terminal in (False, True):
        console = Console(record=True, width=60, file=io.StringIO(), force_terminal=terminal)
        show("mini", console=console)
        row = console.export_text().splitlines()[2].strip()
        assert row.split()[-4:] == numbers
        assert row.startswith(one.row.strip()) != terminal
        assert terminal or "\N{HORIZONTAL ELLIPSIS}" not in row


@pytest.mark.slow
def test_the_command_loads_neither_torch_nor_hydra(tmp_path: Path) -> None:
    Record("mini", tmp_path / "outputs" / "sweeps").merge([entry("a")])
    status = str(ROOT / "src" / "sweep_status.py")
    run = f"import runpy, sys; sys.argv = ['x']; runpy.run_path({status!r}, run_name='__main__')"
    check = f"{run}; print({{'torch', 'hydra'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "mini: 0 of 1 done, 1 queued\nset()\n"
    done = subprocess.run([sys.executable, status, "maxi"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "error: no sweep 'maxi' on record; outputs/sweeps has: mini\n",
    )
