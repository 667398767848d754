"""Which runs a row takes: runs on record, committed results, and damaged ones."""

import json
import math
from typing import Any

import pytest

from hornn.reporting.runs import find_runs
from hornn.reporting.tables import build_tables
from hornn.reporting.unwritten import unwritten_sweeps
from reporting.place import Place, cells_of, line_of, table_of


def test_a_committed_result_wins_over_the_run_of_the_same_config(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 999.0)})
    line = line_of(table_of(place), "rnn")
    assert line.scores["test_ppl"].values == (120.0,)
    assert len(line.runs) == 1


@pytest.mark.parametrize(
    ("committed", "own", "shown"),
    [
        ({}, {"dynamic": {"test_ppl": 110.0}}, 100.0),
        ({"dynamic": {"test_ppl": 110.0}}, {}, 120.0),
        ({"status": "diverged"}, {}, 100.0),
        ({}, {"status": "diverged"}, 120.0),
    ],
)
def test_the_same_run_that_was_mended_wins_over_the_committed_result(
    place: Any, committed: dict[str, Any], own: dict[str, Any], shown: float
) -> None:
    """Or to which something was added: the page shows what `--keep` would keep."""
    place.commit("rnn", 1, 120.0, **committed)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 100.0, **own)})
    line = line_of(table_of(place), "rnn")
    assert line.scores["test_ppl"].values == (shown,)
    assert len(line.runs) == 1


def test_a_result_counts_whatever_another_record_says(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: another")
    place.write_sweep("another", text)
    place.record({"row": "rnn", "seed": 1, "status": "queued", "name": "aaaa"}, sweep="another")
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    for name in ("toy", "another"):
        line = line_of(table_of(place, name), "rnn")
        assert [run.state for run in line.runs] == ["done"]
        assert line.status == "seed 2 not run"


def test_a_run_serves_every_table_that_has_it(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: other")
    place.write_sweep("other", text.replace("name: sum-2", "name: the-same"))
    place.commit("sum-2", 1, 111.0)
    assert line_of(table_of(place, "other"), "the-same").scores["test_ppl"].values == (111.0,)


def test_one_thread_is_no_plural(place: Any) -> None:
    for seed, threads in ((1, 1), (2, 11)):
        place.commit("rnn", seed, device=f"cpu (abacus, {threads} threads)")
    assert line_of(table_of(place), "rnn").devices == ("cpu (abacus, 1 thread)", "cpu (abacus, 11 threads)")


def test_committed_only_sees_no_record(place: Any) -> None:
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    assert table_of(place, committed_only=True).measured == 0
    assert table_of(place).measured == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 2, "stat', "not a whole result file: Unterminated string"),
        ("", "not a whole result file: Expecting value"),
        ('{"status": "completed"}', "not a whole result file: it is without schema_version, "),
        ("[1]", "not a whole result file: it must hold keys and values, got [1]"),
        ('{"schema_version": 0}', "of schema version 0, this program reads 2"),
        ('{"schema_version": 2, "status": "completed", "seed": 2}', "without name, num_parameters"),
    ],
)
def test_a_result_that_cannot_be_used_is_shown_with_its_reason(place: Any, text: str, message: str) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2).write_text(text)
    table = table_of(place)
    assert line_of(table, "rnn").status == "seed 2 damaged"
    (mark,) = line_of(table, "rnn").marks
    assert "rnn-seed2.json" in mark
    assert message in mark
    assert cells_of(table, "rnn")["measured"] == "120.0"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_ppl": "low"}, 'test_ppl must be a number or null, got "low"'),
        ({"test_ppl": math.nan}, "NaN is no number"),
        ({"test_ppl": None}, "test_ppl must be a number, got null"),
        ({"valid_ppl": None}, "valid_ppl must be a number, got null"),
        ({"metrics": "none"}, 'metrics must be a list, got "none"'),
        ({"config": [1]}, "config must be keys and values, got [1]"),
        ({"commit": 7}, "commit must be text or null, got 7"),
        ({"choices": {"data": {}}}, "data must be text or null, got {}"),
        ({"num_parameters": "many"}, 'num_parameters must be a whole number, got "many"'),
    ],
)
def test_a_result_of_wrong_values_is_no_measured_row(place: Any, changes: Any, message: str) -> None:
    path = place.commit("rnn", 1)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    table = table_of(place)
    assert table.measured == 0
    assert line_of(table, "rnn").status == "seed 1 damaged, seed 2 not run"
    (mark,) = line_of(table, "rnn").marks
    assert mark == f"seed 1 damaged: {path}: not a whole result file: {message}; remove it"


@pytest.mark.parametrize("kind", ["folder", "loop", "nested"])
def test_a_file_that_cannot_be_read_leaves_the_rest_of_the_report(place: Any, kind: str) -> None:
    place.commit("rnn", 1, 120.0)
    path = place.commit("rnn", 2)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.write_text("[" * 100_000)
    line = line_of(table_of(place), "rnn")
    assert line.scores["test_ppl"].values == (120.0,)
    assert line.status == "seed 2 damaged"
    assert str(path) in line.marks[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"run_dir": 7}, "run_dir must be text, got 7"), ({"row": ["rnn"]}, "row must be text")],
)
def test_a_record_of_wrong_values_is_a_warning(place: Any, change: Any, reason: str) -> None:
    path = place.record({"row": "rnn", "seed": 1, "status": "queued"})
    record = json.loads(path.read_text())
    record["jobs"][0] |= change
    path.write_text(json.dumps(record))
    assert reason in table_of(place).warnings[0]


@pytest.mark.parametrize("kind", ["folder", "loop"])
def test_a_record_that_cannot_be_read_is_a_warning(place: Any, kind: str) -> None:
    path = place.record()
    path.unlink()
    path.mkdir() if kind == "folder" else path.symlink_to(path.name)
    assert f"{path} cannot be read (" in table_of(place).warnings[0]


def test_a_result_with_another_seed_than_its_name_is_damaged(place: Any) -> None:
    path = place.commit("rnn", 1, 120.0)
    path.rename(path.with_name("rnn-seed2.json"))
    assert "its name says seed 2, it holds seed 1" in line_of(table_of(place), "rnn").marks[0]


def test_a_run_that_is_not_of_the_recorded_config_is_damaged(place: Any) -> None:
    path = place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    path.write_text(path.read_text().replace('"name": "aaaa"', '"name": "cccc"'))
    assert "it is run aaaa, the record's is cccc" in line_of(table_of(place), "rnn").marks[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged ("),
        ('{"schema_version": 2}', "is damaged ("),
        ("[]", "is damaged ("),
        ('{"schema_version": 9, "jobs": []}', "has schema version 9, this program reads 2"),
    ],
)
def test_a_damaged_record_is_a_warning(place: Any, text: str, said: str) -> None:
    place.commit("rnn", 1, 120.0)
    place.record().write_text(text)
    table = table_of(place)
    assert f"toy.json {said}" in table.warnings[0]
    assert cells_of(table, "rnn")["measured"] == "120.0"


def test_results_that_fit_no_row_are_a_warning(place: Any) -> None:
    place.commit("absent", 1)
    place.commit("stack", 1)
    place.commit("rnn", 1).rename(place.results / "tables" / "toy" / "rnn.json")
    place.record({"row": "gone", "seed": 1, "status": "done"})
    warnings = table_of(place).warnings
    tables, record = place.results / "tables" / "toy", place.results / "sweeps" / "toy.json"
    sweep = place.sweeps / "toy.yaml"
    assert warnings == (
        f"{tables / 'absent-seed1.json'} and 2 more belong to no row: give them the names <row>-seed<number>.json of "
        f"rows that {sweep} has, or delete them",
        f"'gone' is a row of {record} that {sweep} does not run: give the name back, or delete what the record "
        "has under it",
    )


def test_a_record_without_a_sweep_file_is_no_warning(place: Any) -> None:
    place.record(
        {"row": "model=rnn", "seed": 1, "status": "done", "result": place.result(1, 9.0)}, sweep="adhoc-1"
    )
    assert table_of(place).warnings == ()
    assert json.loads((place.results / "sweeps" / "adhoc-1.json").read_text())["sweep"] == "adhoc-1"


@pytest.mark.parametrize(
    ("results", "keys"),
    [
        ([], ["test_ppl"]),
        ([{"test_ppl": 90.0}], ["test_ppl"]),
        ([{"test_ppl": 4.0, "corpus": {"unit": "char"}}], ["test_bpc"]),
        ([{"test_nll": 3.4, "valid_nll": 3.5}], ["test_nll"]),
        ([{"test_nll": 3.4, "valid_nll": 3.5}, {"test_ppl": 90.0}], ["test_ppl", "test_nll"]),
    ],
)
def test_a_sweep_without_a_file_has_the_scores_of_its_results(
    place: Place, results: list[dict[str, Any]], keys: list[str]
) -> None:
    jobs: list[dict[str, Any]] = [{"row": "queued", "seed": 1, "status": "queued"}]
    for seed, changes in enumerate(results):
        result = {**place.result(seed, 1.0), **changes}
        if "test_ppl" not in changes:
            del result["test_ppl"], result["valid_ppl"]
        jobs.append({"row": f"row {seed}", "seed": seed, "status": "done", "result": result})
    place.record(*jobs, sweep="mine")
    sweeps = unwritten_sweeps([], place.results)
    (table,) = build_tables(sweeps, find_runs(sweeps, place.results))
    assert [metric.key for metric in table.sweep.metrics] == keys
    assert all(len(line.runs) == 1 for line in table.lines)
    means = [score.mean for line in table.lines[1:] for score in line.scores.values()]
    assert sum(mean is not None for mean in means) == len(results)


@pytest.mark.parametrize("given", [True, False])
def test_a_table_whose_file_was_not_read_says_where_its_labels_are(place: Any, given: bool) -> None:
    job = {"row": "a", "seed": 1, "status": "done", "result": place.result(1, 120.0)}
    words = ["--config-dir=own", "sweeps=mine"] if given else ["model=rnn", "sweep.name=mine"]
    place.record({**job, "overrides": words}, sweep="mine")
    (sweep,) = unwritten_sweeps([], place.results)
    assert ("sweeps/mine.yaml" in sweep.note and "--config-dir=FOLDER" in sweep.note) == given
