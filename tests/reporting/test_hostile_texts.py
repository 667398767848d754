"""Texts of a stranger's record, result or vocabulary act nowhere outside of their place."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from hornn.reporting.comma_separated import table_csv
from hornn.reporting.commands import write_report
from hornn.reporting.latex import table_latex
from hornn.reporting.markdown import escape_markdown, table_markdown
from hornn.reporting.runs import find_runs
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.tables import Table, build_tables
from hornn.reporting.unwritten import unwritten_sweeps
from hornn.shown import ACTING, shown, shown_lines
from hornn.sweep.record import read_record
from hornn.sweep.status import show
from reporting.place import Place, table_of

TITLE, CLEAR, CLIPBOARD = "\x1b]0;owned\x07", "\x1b[2J", "\x1b]52;c;ZXZpbA==\x07"
IMAGE = "![x](https://evil.example/track.png)\n\n# injected"
HOSTILE = f"{TITLE}{CLEAR}{CLIPBOARD}\x9b31m\u202egnp\ud800{IMAGE}"
ROWS = {
    "formula": '=HYPERLINK("https://evil.example")',
    "option": "[2em] begins a row",
    "star": "* begins a row",
    "blank line": "over\n\nlines",
    "terminal": HOSTILE,
}


@pytest.fixture
def hostile(place: Place) -> Place:
    """A record whose rows and errors are hostile, with a result for each row, and a failed run."""
    changes = {"commit": HOSTILE, "device": HOSTILE, "dirty": True}
    jobs = []
    for number, row in enumerate(ROWS.values()):
        name, run_dir = f"aaa{number}", place.results / "runs" / str(number)
        run_dir.mkdir(parents=True)
        (run_dir / "result.json").write_text(json.dumps(place.result(1, 77.0, name=name, **changes)))
        jobs.append(
            {"row": row, "seed": 1, "status": "done", "name": name, "run_dir": f"outputs/runs/{number}"}
        )
    failed = {"row": HOSTILE, "seed": 2, "status": "failed", "error": HOSTILE, "name": "aaa9"}
    jobs.append({**failed, "run_dir": "outputs/runs/9", "overrides": [f"x={HOSTILE}"]})
    place.record(*jobs, sweep="theirs")
    return place


def test_a_terminal_shows_no_more_than_text(hostile: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hostile.folder)
    console = Console(file=io.StringIO(), width=300, color_system=None, force_terminal=False)
    show("theirs", console=console)
    show(console=console)
    (hostile.results / "sweeps" / "toy.json").write_text(json.dumps({"schema_version": HOSTILE, "jobs": []}))
    show(console=console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "injected" in said
    assert not ACTING.search(said.replace("\n", ""))


def test_a_report_says_it_in_lines_of_text(hostile: Place) -> None:
    hostile.commit("rnn", 1, commit=7, error=HOSTILE)
    hostile.commit("rnn", 2, status="diverged", error=HOSTILE, choices={HOSTILE: HOSTILE})
    out = hostile.folder / "report"
    said = write_report(hostile.results, hostile.sweeps, out).said
    assert not ACTING.search(said.replace("\n", ""))
    for path in out.iterdir():
        assert "\x1b" not in path.read_text(encoding="utf-8"), path


def test_markdown_holds_no_picture_and_no_heading(hostile: Place) -> None:
    hostile.commit("rnn", 1, status="diverged", error=IMAGE)
    for table in (table_of(hostile), table_of_record(hostile)):
        text = table_markdown(table)
        assert "injected" in text
        assert not re.search(r"^# injected", text, re.MULTILINE)
        assert "![x]" not in text
        assert r"\!\[x](https" in text
    assert escape_markdown("run `a [b]*`, not [c]* `d") == r"run `a [b]*`, not \[c]\* \`d"
    assert escape_markdown(r"``![d] \`![e]`") == r"\`\`\!\[d] \\`![e]`"


def test_csv_holds_no_formula(hostile: Place) -> None:
    for row in csv.DictReader(io.StringIO(table_csv(table_of_record(hostile)))):
        for value in row.values():
            assert not value.startswith(("=", "+", "@")), value
            assert not ACTING.search(value)


def test_latex_keeps_each_label_in_its_cell(hostile: Place) -> None:
    text = table_latex(table_of_record(hostile))
    body = text.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0].splitlines()
    assert [line.partition(" & ")[0] for line in body[1:4]] == [
        "{}[2em] begins a row",
        "{}* begins a row",
        "{}over lines",
    ]
    assert all(line.endswith(r" \\") for line in body)


def table_of_record(place: Place) -> Table:
    """The table of the record that has no sweep file."""
    sweeps = unwritten_sweeps(read_sweeps(place.sweeps), place.results)
    (table,) = build_tables(sweeps, find_runs(sweeps, place.results))
    return table


def test_a_record_names_no_folder_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "theirs.json"
    job = {"row": "a", "seed": 1, "run_dir": "a\0b", "overrides": [], "name": "b", "status": "queued"}
    for changes, said in (
        ({}, r"run_dir must be a path without control characters, got 'a\\x00b'"),
        ({"run_dir": "a", "overrides": [7]}, "overrides must list texts"),
    ):
        path.write_text(json.dumps({"schema_version": 2, "jobs": [{**job, "error": None, **changes}]}))
        with pytest.raises(ValueError, match=f"theirs.json is damaged .{said}"):
            read_record(path)


def test_what_is_shown_of_honest_texts_is_the_text() -> None:
    for text in ("data.train='/my  folder/Größe.txt'", "日本語", "a\u200cb", "± §"):
        assert shown(text) == text
    assert shown_lines("one\ntwo\x1b[2J\r\n") == "one\ntwo [2J \n"
