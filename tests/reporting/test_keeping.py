"""Results that are kept for the commit: which run of a row and seed stays."""

import json
from typing import Any

import pytest

from hornn.reporting.runs import find_runs, keep_results
from hornn.reporting.sweeps import read_sweeps
from reporting.place import Place, line_of, table_of

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"
SOURCES = [{"code": {"class": "hornn.cells.rnn.RNN", "source": letter * 64}} for letter in "ab"]


def test_finished_runs_are_kept_for_the_commit(place: Any) -> None:
    """Each run that is not kept yet is kept once; a run by a newer recipe replaces the run by the older recipe."""
    old = place.commit("rnn", 1, 130.0, name="old")
    same = place.commit("sum-2", 1, 111.0)
    place.record(
        {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0, name="new")},
        {"row": "sum-2", "seed": 1, "status": "done", "result": place.result(1, 222.0)},
        {"row": "sum-3", "seed": 1, "status": "running"},
        {"row": "max-2", "seed": 2, "status": "failed", "result": place.result(2, 9.0, status="diverged")},
    )
    warnings: dict[str, list[str]] = {}
    written = keep_results(read_sweeps(place.sweeps), place.results, warnings)
    tables = place.results / "tables" / "toy"
    assert written == [old, tables / "max-2-seed2.json"]
    assert json.loads(old.read_text())["test_ppl"] == 120
    assert json.loads(same.read_text())["test_ppl"] == 111
    assert keep_results(read_sweeps(place.sweeps), place.results, warnings) == []
    assert not warnings


def test_a_run_from_before_the_kept_one_is_left(place: Any) -> None:
    """A record of long ago, of another recipe, does not replace what was committed since."""
    kept = place.commit("rnn", 1, 120.0, name="new", finished="2026-02-01T00:00:00+00:00")
    result = place.result(1, 130.0, name="old", finished="2026-01-01T00:00:00+00:00")
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == []
    assert json.loads(kept.read_text())["test_ppl"] == 120


def test_a_kept_result_learns_of_dynamic_evaluation(place: Any) -> None:
    kept = place.commit("rnn", 1, 120.0)
    result = place.result(1, 120.0, dynamic={"test_ppl": 110.0})
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == [kept]
    assert json.loads(kept.read_text())["dynamic"]["test_ppl"] == 110
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == []


def test_a_run_that_no_longer_diverges_takes_the_place_of_the_one_that_did(place: Any) -> None:
    kept = place.commit("rnn", 1, 999.0, status="diverged")
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == [kept]
    assert json.loads(kept.read_text())["test_ppl"] == 120
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == []


@pytest.mark.parametrize(
    ("committed", "own", "shown"),
    [
        ({**SOURCES[0], "finished": OLD}, {**SOURCES[1], "finished": NEW}, 100.0),
        ({**SOURCES[0], "finished": NEW}, {**SOURCES[1], "finished": OLD}, 120.0),
        ({**SOURCES[0], "finished": OLD}, {**SOURCES[0], "finished": NEW}, 120.0),
        ({**SOURCES[0], "finished": OLD}, {**SOURCES[1], "finished": NEW, "status": "diverged"}, 120.0),
        ({"dirty": True, "finished": OLD}, {"finished": NEW}, 100.0),
        ({"finished": OLD}, {"dirty": True, "finished": NEW}, 120.0),
    ],
)
def test_a_run_that_is_trained_again_counts_where_its_code_is_better_known(
    place: Place, committed: dict[str, Any], own: dict[str, Any], shown: float
) -> None:
    """A later run by other source code of a cell, or by a tree without changes; in the report as by `--keep`."""
    kept = place.commit("rnn", 1, 120.0, **committed)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 100.0, **own)})
    assert line_of(table_of(place), "rnn").scores["test_ppl"].values == (shown,)
    sweeps = read_sweeps(place.sweeps)
    assert keep_results(sweeps, place.results, {}) == [kept] * (shown == 100)
    assert json.loads(kept.read_text())["test_ppl"] == shown
    assert keep_results(sweeps, place.results, {}) == []


def test_a_run_that_is_trained_again_without_a_part_says_so(place: Place) -> None:
    kept = place.commit("rnn", 1, 120.0, **SOURCES[0], finished=OLD, dynamic={"test_ppl": 110.0})
    new = place.result(1, 100.0, **SOURCES[1], finished=NEW)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": new})
    warnings: dict[str, list[str]] = {}
    assert keep_results(read_sweeps(place.sweeps), place.results, warnings) == []
    (warning,) = warnings["toy"]
    assert warning.endswith(f"lacks dynamic, add that too: {kept} stays")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"status": "diverged"}, "diverged"),
        ({"config": {"optimizer": {"lr": 0.7}}}, "departs from the recipe"),
    ],
)
def test_a_try_by_other_constants_does_not_replace_a_kept_result(
    place: Any, changes: dict[str, Any], fault: str
) -> None:
    kept = place.commit("rnn", 1, 120.0)
    result = place.result(1, 999.0, name="try", **changes)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    warnings: dict[str, list[str]] = {}
    assert keep_results(read_sweeps(place.sweeps), place.results, warnings) == []
    (warning,) = warnings["toy"]
    assert warning.endswith(f"result.json {fault}: {kept} stays")
    assert json.loads(kept.read_text())["test_ppl"] == 120


def test_a_run_of_two_tables_is_kept_once(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("zoo", text.replace("name: toy", "name: zoo"))
    first = place.commit("rnn", 1, 130.0, name="old")
    job = {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0, name="new")}
    place.record(job, sweep="zoo")
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == [first]


def test_a_run_of_an_edited_cell_takes_the_place_of_the_one_before(place: Any) -> None:
    codes = [{"class": "mine.Cell", "source": letter * 64} for letter in "ab"]
    kept = place.commit("rnn", 1, 120.0, code=codes[0], finished="2026-01-01T00:00:00+00:00")
    new = place.result(1, 110.0, code=codes[1], finished="2026-02-01T00:00:00+00:00")
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": new})
    sweeps = read_sweeps(place.sweeps)
    runs = find_runs(sweeps, place.results).runs[sweeps[0].rows[0].identity]
    assert [run.source[-1] for run in runs] == ["a", "b"], "neither hides the other"
    assert keep_results(sweeps, place.results, {}) == [kept]
    assert json.loads(kept.read_text())["test_ppl"] == 110
    assert keep_results(sweeps, place.results, {}) == []
