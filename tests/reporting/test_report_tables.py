"""Tables: which runs a row takes, what it says of those that are missing or doubtful, and the order of models."""

import csv
import io
import json
import math
import re
from typing import Any

import pytest

from hornn.reporting.formats import comma_separated, contents, latex, lay_out, markdown, notes, overview
from hornn.reporting.runs import find_runs, keep_results
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.tables import Line, Table, build_tables, spearman


def build(place: Any, name: str = "toy", committed_only: bool = False) -> Table:
    sweeps = read_sweeps(place.sweeps)
    tables = build_tables(sweeps, find_runs(sweeps, place.results, committed_only))
    return next(table for table in tables if table.sweep.name == name)


def line_of(table: Table, row: str) -> Line:
    return next(line for line in table.lines if line.row.name == row)


def cells_of(table: Table, row: str) -> dict[str, str]:
    grid = lay_out(table)
    index = [line.row.name for line in table.lines].index(row)
    return dict(zip(grid.header, (cell.text for cell in grid.rows[index]), strict=True))


def test_a_row_shows_mean_deviation_and_the_seed_that_validation_chooses(place: Any) -> None:
    place.commit("sum-2", 1, 100.0)
    place.commit("sum-2", 2, 104.0, valid_ppl=50.0)
    assert cells_of(build(place), "sum-2") == {
        "model": "Sum, order 2",
        "published": "111",
        "ours": f"102.0 ± {math.sqrt(8):.1f} (n = 2)",
        "best by validation": "104.0",
        "difference": "-9.0",
        "weights": "8,640,000",
        "s/epoch": "12.5",
        "runs": "",
    }


def test_one_seed_is_not_chosen_from(place: Any) -> None:
    place.commit("sum-2", 1, 100.0)
    assert "best by validation" not in cells_of(build(place), "sum-2")


def test_a_table_in_units_of_one_of_its_rows(place: Any, broken: Any) -> None:
    broken("  lower_is_better", "  relative_to: sum-2\n  lower_is_better")
    place.commit("sum-2", 1, 100.0)
    place.commit("sum-3", 1, 80.0)
    cells = cells_of(build(place), "sum-3")
    assert "difference" not in cells
    assert (cells["published / Sum, order 2"], cells["ours / Sum, order 2"]) == ("0.97", "0.80")
    assert cells_of(build(place), "max-2")["ours / Sum, order 2"] == ""


def test_every_row_without_runs_says_why(place: Any) -> None:
    table = build(place)
    assert [line.status for line in table.lines] == ["not run", "not run", "not run", "not run", "not built"]
    text = "\n".join(notes(table))
    assert "0 of 4 rows measured. `python src/train.py -m sweeps=toy` makes what is missing." in text


def test_published_numbers_are_marked(place: Any) -> None:
    table = build(place)
    assert cells_of(table, "rnn")["published"] == "123‡"
    assert cells_of(table, "sum-3")["published"] == "108†"
    assert lay_out(table).legend.keys() == {"†", "‡"}


def test_the_record_says_how_far_the_runs_are(place: Any) -> None:
    place.record(
        {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)},
        {"row": "rnn", "seed": 2, "status": "running", "config_hash": "aaaa"},
        {"row": "sum-2", "seed": 1, "status": "failed", "error": "killed (signal 9)"},
        {"row": "sum-2", "seed": 2, "status": "queued"},
        {"row": "sum-3", "seed": 1, "status": "done"},
        {"row": "max-2", "seed": 1, "status": "failed", "result": place.result(1, 0.0, status="diverged")},
    )
    table = build(place)
    assert line_of(table, "rnn").status == "seed 2 running"
    assert line_of(table, "sum-2").status == "seed 1 failed, seed 2 queued"
    assert line_of(table, "sum-2").marks == ("seed 1 failed: killed (signal 9)",)
    assert line_of(table, "sum-3").status == "seed 1 lost, seed 2 not run"
    assert line_of(table, "max-2").status == "seed 1 diverged, seed 2 not run"
    assert cells_of(table, "max-2")["ours"] == ""
    assert "`hydra.launcher.retry_failed=true` behind it also what failed" in "\n".join(notes(table))


def test_a_committed_result_wins_over_the_run_of_the_same_config(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 999.0)})
    line = line_of(build(place), "rnn")
    assert line.scores["test_ppl"].values == (120.0,)
    assert len(line.runs) == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_results_of_two_configs_are_not_averaged(place: Any, seed: int) -> None:
    place.commit("rnn", 1, 120.0)
    place.record(
        {"row": "rnn", "seed": seed, "status": "done", "result": place.result(seed, 90.0, config_hash="bbbb")}
    )
    table = build(place)
    line = line_of(table, "rnn")
    assert line.status == "conflict"
    assert cells_of(table, "rnn")["ours"] == ""
    assert line.marks == (f"runs of different configs are not averaged (aaaa: seed 1; bbbb: seed {seed})",)


def test_a_result_counts_whatever_another_record_says(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: another")
    place.write_sweep("another", text)
    place.record({"row": "rnn", "seed": 1, "status": "queued", "config_hash": "aaaa"}, sweep="another")
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    for name in ("toy", "another"):
        line = line_of(build(place, name), "rnn")
        assert [run.state for run in line.runs] == ["done"]
        assert line.status == "seed 2 not run"


def test_finished_runs_are_kept_for_the_commit(place: Any) -> None:
    """Those that are not kept yet, each once; a newer recipe's in the place of the older one's."""
    old = place.commit("rnn", 1, 130.0, config_hash="old")
    same = place.commit("sum-2", 1, 111.0)
    place.record(
        {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0, config_hash="new")},
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
    kept = place.commit("rnn", 1, 120.0, config_hash="new", finished="2026-02-01T00:00:00+00:00")
    result = place.result(1, 130.0, config_hash="old", finished="2026-01-01T00:00:00+00:00")
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
    result = place.result(1, 999.0, config_hash="try", **changes)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    warnings: dict[str, list[str]] = {}
    assert keep_results(read_sweeps(place.sweeps), place.results, warnings) == []
    (warning,) = warnings["toy"]
    assert warning.endswith(f"result.json {fault}: {kept} stays")
    assert json.loads(kept.read_text())["test_ppl"] == 120


def test_a_run_of_two_tables_is_kept_once(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("zoo", text.replace("name: toy", "name: zoo"))
    first = place.commit("rnn", 1, 130.0, config_hash="old")
    job = {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0, config_hash="new")}
    place.record(job, sweep="zoo")
    assert keep_results(read_sweeps(place.sweeps), place.results, {}) == [first]


def test_a_committed_result_of_an_older_config_is_marked(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.record({"row": "rnn", "seed": 1, "status": "queued", "config_hash": "bbbb"})
    line = line_of(build(place), "rnn")
    assert line.scores["test_ppl"].values == (120.0,)
    assert line.marks == ("runs of different configs are not averaged (aaaa: seed 1; bbbb: seed 1)",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 1, "stat', "not a whole result file: Unterminated string"),
        ("", "not a whole result file: Expecting value"),
        ('{"status": "completed"}', "not a whole result file: 'schema_version'"),
        ("[1]", "not a whole result file: list indices"),
        ('{"schema_version": 0}', "of schema version 0, this program reads 1"),
        ('{"schema_version": 1, "status": "completed", "seed": 2}', "without config_hash, num_parameters"),
    ],
)
def test_a_result_that_cannot_be_used_is_shown_with_its_reason(place: Any, text: str, message: str) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2).write_text(text)
    table = build(place)
    assert line_of(table, "rnn").status == "seed 2 damaged"
    (mark,) = line_of(table, "rnn").marks
    assert "rnn-seed2.json" in mark
    assert message in mark
    assert cells_of(table, "rnn")["ours"] == "120.0"


def test_a_result_with_another_seed_than_its_name_is_damaged(place: Any) -> None:
    path = place.commit("rnn", 1, 120.0)
    path.rename(path.with_name("rnn-seed2.json"))
    assert "its name says seed 2, it holds seed 1" in line_of(build(place), "rnn").marks[0]


def test_a_run_that_is_not_of_the_recorded_config_is_damaged(place: Any) -> None:
    path = place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    path.write_text(path.read_text().replace('"config_hash": "aaaa"', '"config_hash": "cccc"'))
    assert "its config is aaaa, the record's cccc" in line_of(build(place), "rnn").marks[0]


def test_commits_and_changed_trees_are_not_mixed_silently(place: Any) -> None:
    place.commit("rnn", 1, 120.0, commit="a" * 40)
    place.commit("sum-2", 1, 110.0, commit="b" * 40, dirty=True)
    place.commit("sum-3", 1, 110.0, commit="a" * 40)
    place.commit("sum-3", 2, 110.0, commit="b" * 40)
    table = build(place)
    assert line_of(table, "rnn").marks == ()
    assert line_of(table, "sum-2").marks == ("from a working tree with changes that are not committed",)
    assert line_of(table, "sum-3").marks == ("its seeds come from several commits, which their files name",)
    assert table.commits == ["aaaaaaa", "bbbbbbb", "bbbbbbb+"]


def test_a_result_by_another_recipe_is_marked(place: Any) -> None:
    config = {
        "model": {"_target_": "Hornn", "hidden_size": 400, "order": 2},
        "data": {"unit": "word"},
        "optimizer": {"lr": 0.1},
        "trainer": {"max_epochs": 15, "accelerator": "gpu"},
        "weight_noise": 0.1,
    }
    place.commit("sum-2", 1, 110.0, config=config)
    place.commit("sum-3", 1, 110.0, config={**config, "trainer": {}, "weight_noise": 0})
    unnamed = {**config, "trainer": {"gradient_clip_val": 1}, "weight_noise": 0}
    place.commit("max-2", 1, 110.0, config={**unnamed, "model": {}, "network": {"head": {"scale": 2}}})
    table = build(place)
    assert line_of(table, "sum-2").marks == (
        "departs from the recipe: weight_noise=0.1, not 0.0; trainer.max_epochs=15, not 20",
    )
    assert line_of(table, "sum-3").marks == ("departs from the recipe: model.order=2, not 3",)
    assert line_of(table, "max-2").marks == (
        "departs from the recipe: trainer.gradient_clip_val=1, not given",
    )


def test_a_result_that_started_from_another_network_is_marked(place: Any, broken: Any) -> None:
    broken("name: sum-3\n", "name: sum-3\n      start: sum-2\n")
    place.commit("sum-2", 1, 110.0, config_hash="bbbb")
    path = "outputs/hornn/toy/{}/seed=1/best.ckpt"
    place.commit("sum-3", 1, 108.0, config={"init_from": path.format("bbbb")})
    assert line_of(build(place), "sum-3").marks == ()
    place.commit("sum-3", 1, 108.0, config={"init_from": path.format("cccc")})
    mark = f"departs from the recipe: init_from={path.format('cccc')}, no run of sum-2 with this seed"
    assert line_of(build(place), "sum-3").marks == (mark,)


def test_times_of_different_devices_are_not_averaged(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 120.0, device="gpu")
    place.commit("sum-2", 1, 110.0)
    assert cells_of(build(place), "rnn")["s/epoch"] == ""
    assert cells_of(build(place), "sum-2")["s/epoch"] == "12.5"


def test_different_devices_have_letters_that_the_notes_explain(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 120.0, device="gpu")
    place.commit("sum-2", 1, 110.0, device="gpu")
    table = build(place)
    assert cells_of(table, "rnn")["device"] == "A, B"
    assert cells_of(table, "sum-2")["device"] == "B"
    assert "Results of commit 1234567 on A: cpu (abacus); B: gpu." in notes(table)
    assert comma_separated(table).splitlines()[1].count("cpu (abacus); gpu") == 1


def test_a_device_that_is_everywhere_the_same_is_told_once(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    assert "device" not in cells_of(build(place), "rnn")
    assert "Results of commit 1234567 on cpu (abacus)." in notes(build(place))


def test_validation_on_the_test_text_is_marked(place: Any) -> None:
    place.commit("rnn", 1, 120.0, corpus={"unit": "word", "valid_is_test": True})
    assert line_of(build(place), "rnn").marks[0].startswith("validation reads the test text")


@pytest.mark.parametrize("text", ["{", '{"schema_version": 1}', '{"schema_version": 9, "jobs": []}', "[]"])
def test_a_damaged_record_is_a_warning(place: Any, text: str) -> None:
    place.commit("rnn", 1, 120.0)
    place.record().write_text(text)
    table = build(place)
    assert "toy.json is damaged (" in table.warnings[0]
    assert cells_of(table, "rnn")["ours"] == "120.0"


def test_results_that_fit_no_row_are_a_warning(place: Any) -> None:
    place.commit("absent", 1)
    place.commit("stack", 1)
    place.commit("rnn", 1).rename(place.results / "tables" / "toy" / "rnn.json")
    place.record({"row": "gone", "seed": 1, "status": "done"})
    warnings = build(place).warnings
    assert [text.split("/")[-1] for text in warnings[:3]] == [
        f"{name} belongs to no row: its name must be <row>-seed<number>.json"
        for name in ("absent-seed1.json", "rnn.json", "stack-seed1.json")
    ]
    assert "names a row 'gone' that" in warnings[3]


def test_a_run_serves_every_table_that_has_it(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: other")
    place.write_sweep("other", text.replace("name: sum-2", "name: the-same"))
    place.commit("sum-2", 1, 111.0)
    assert line_of(build(place, "other"), "the-same").scores["test_ppl"].values == (111.0,)


def test_dynamic_evaluation_is_missed_where_other_seeds_have_it_alone(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("metric: test_ppl", "metric: dynamic.test_ppl")
    place.write_sweep("toy", text)
    place.commit("rnn", 1, 100.0)
    assert line_of(build(place), "rnn").marks == ()
    place.commit("rnn", 2, 100.0, dynamic={"test_ppl": 90.0})
    assert line_of(build(place), "rnn").marks == ("1 of its 2 results hold no dynamic.test_ppl",)


def test_a_metric_may_lie_inside_of_the_result(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("metric: test_ppl", "metric: metrics.-1.valid_ppl")
    place.write_sweep("toy", text)
    place.commit("rnn", 1, 100.0)
    place.commit("sum-2", 1, 100.0, metrics=[])
    key = "metrics.-1.valid_ppl"
    assert line_of(build(place), "rnn").scores[key].values == pytest.approx((100 + 20 / 3,))
    assert line_of(build(place), "sum-2").scores[key].values == ()


def test_bits_are_those_of_characters_alone(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("test_ppl", "test_bpc")
    place.write_sweep("toy", text)
    place.commit("rnn", 1, 2.0, corpus={"unit": "char"})
    place.commit("sum-2", 1, 2.0, corpus={"unit": "word"})
    table = build(place)
    assert line_of(table, "rnn").scores["test_bpc"].values == pytest.approx((1.0,))
    assert line_of(table, "sum-2").scores["test_bpc"].values == ()
    assert line_of(table, "sum-2").marks == ("1 of its 1 results hold no test_bpc",)


def test_characters_have_bits_and_words_perplexity_where_a_table_has_both(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    both = "metric: [{key: test_bpc, label: bits}, {key: test_ppl, label: perplexity}]"
    text = re.sub(r"metric: test_ppl\n.*\n", f"{both}\n", text)
    place.write_sweep("toy", re.sub(r"      published: .*\n", "", text))
    place.commit("rnn", 1, 2.0, corpus={"unit": "char"})
    place.commit("sum-2", 1, 100.0, corpus={"unit": "word"})
    rnn, words = (line_of(build(place), row) for row in ("rnn", "sum-2"))
    assert {key: score.values for key, score in rnn.scores.items()} == {"test_bpc": pytest.approx((1.0,))}
    assert {key: score.values for key, score in words.scores.items()} == {"test_ppl": (100.0,)}
    assert rnn.marks == words.marks == ()


# -- the order of models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),
        # From SciPy 1.16: spearmanr([1, 2, 2, 4], [1, 3, 2, 4])
        ([1, 2, 2, 4], [1, 3, 2, 4], 0.9486832980505138),
        ([1, 1, 1], [1, 2, 3], None),
    ],
)
def test_rank_correlation(one: list[float], other: list[float], expected: float | None) -> None:
    found = spearman(one, other)
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_order_is_told_in_words(place: Any) -> None:
    place.commit("rnn", 1, 50.0)  # dynamic evaluation: takes no part
    place.commit("sum-2", 1, 120.0)
    place.commit("sum-3", 1, 110.0)
    (text,) = build(place).comparisons
    assert "The order of models is the paper's in the one pair that it separates." in text
    assert "Spearman" not in text
    place.commit("max-2", 1, 130.0)
    (text,) = build(place).comparisons
    assert "3 rows have both numbers (perplexity, test)." in text
    assert "of the 3 pairs that it separates, 2 stand in the same order here" in text
    assert "Spearman's rank correlation is 0.50." in text
    assert "The paper, best first: Sum, order 3; Max, order 2; Sum, order 2." in text
    assert "Ours, best first: Sum, order 3; Sum, order 2; Max, order 2." in text


def test_there_is_no_order_between_recipes(place: Any) -> None:
    noisy = {"model": {"_target_": "Hornn", "order": 2, "hidden_size": 400}, "weight_noise": 1}
    place.commit("sum-2", 1, 120.0, config=noisy)
    place.commit("sum-3", 1, 110.0)
    expected = "2 rows have both numbers (perplexity, test), but not all of ours are by one recipe."
    assert build(place).comparisons == [expected]
    noisy["model"]["order"] = 3
    place.commit("sum-3", 1, 110.0, config=noisy)
    assert "in the one pair that it separates" in build(place).comparisons[0]


# -- claims --------------------------------------------------------------------------------------------------

CLAIMS = """
  claims:
    - {says: "three beat two", better: sum-3, than: [sum-2, max-2]}
    - {says: "little is gained over max", better: sum-3, than: max-2, at_most: 2}
    - {says: "max beats the RNN", better: max-2, than: rnn}
"""


def claims(place: Any) -> list[str]:
    return [text for text in build(place).comparisons if text.startswith("Claim")]


def test_claims_are_judged_by_our_numbers(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    place.commit("sum-2", 1, 130.0)
    assert claims(place) == []
    place.commit("max-2", 1, 125.0)
    assert claims(place) == [
        "Claim: three beat two. Published: Sum, order 3: 108; Max, order 2: 110; 1.8% better. "
        "Ours: Sum, order 3: 100; Max, order 2: 125; 20.0% better (one seed each; "
        "Max, order 2 is itself 14% worse than published): confirmed.",
        "Claim: little is gained over max. Published: Sum, order 3: 108; Max, order 2: 110; 1.8% better. "
        "Ours: Sum, order 3: 100; Max, order 2: 125; 20.0% better (one seed each; "
        "Max, order 2 is itself 14% worse than published): not confirmed.",
    ]
    place.commit("rnn", 1, 120.0)
    assert claims(place)[2] == (
        "Claim: max beats the RNN. Published: Max, order 2: 110; RNN: 123; 10.6% better "
        "(one of them by dynamic evaluation). "
        "Ours: Max, order 2: 125; RNN: 120; 4.2% worse (one seed each; "
        "Max, order 2 is itself 14% worse than published): not confirmed."
    )
    place.commit("rnn", 1, 120.0, dynamic={"test_ppl": 110.0})
    assert "worse than published; RNN by dynamic evaluation, as published: 110): not" in claims(place)[2]


def test_the_tables_that_bear_most_claims_come_first(place: Any, broken: Any) -> None:
    """Before others with results; those without any come last."""
    text = (place.sweeps / "toy.yaml").read_text()
    empty = text.replace("toy/text", "toy/speech")
    place.write_sweep("a_empty", empty.replace("name: toy", "name: a_empty"))
    place.write_sweep("b_plain", text.replace("name: toy", "name: b_plain"))
    broken("  figure:", CLAIMS + "  figure:")
    for row in ("rnn", "sum-2", "sum-3", "max-2"):
        place.commit(row, 1)
    sweeps = read_sweeps(place.sweeps)
    names = [table.sweep.name for table in build_tables(sweeps, find_runs(sweeps, place.results))]
    assert names == ["toy", "b_plain", "a_empty"]


def test_a_claim_may_hold_in_direction_alone(place: Any, broken: Any) -> None:
    """Published: 1.8 % better."""
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-2", 1, 130.0)
    place.commit("max-2", 1, 120.0)
    place.commit("sum-3", 1, 119.0)
    several, little = claims(place)
    assert several.endswith("worse than published): confirmed in direction, with less than half of the gain.")
    assert little.endswith(
        "0.8% better (one seed each; Sum, order 3 is itself 10% worse than published): confirmed."
    )


def test_a_claim_of_little_holds_where_nothing_is_gained(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    for value in (100.0, 99.0):
        place.commit("max-2", 1, value)
        assert claims(place)[0].startswith("Claim: little is gained over max.")
        assert claims(place)[0].endswith(": confirmed.")


def test_a_claim_where_more_is_better(place: Any, broken: Any) -> None:
    broken("  lower_is_better: true", f"{CLAIMS}  lower_is_better: false")
    place.commit("max-2", 1, 150.0)
    place.commit("rnn", 1, 120.0)
    assert "25.0% better" in claims(place)[0]


def test_a_claim_has_its_standard_errors_from_all_seeds_of_the_table(place: Any, broken: Any) -> None:
    """Relative deviations of 0.02 and 0.04, three seeds each: pooled, a spread of sqrt(0.001) with four degrees."""
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 2 * step)
        place.commit("rnn", seed, 125.0 + 5 * step)
    error = math.sqrt(0.001) * math.hypot(0.8, 1) / math.sqrt(3)
    assert f"20.0% better ({0.2 / error:.1f} standard errors, 3 and 3 seeds): confirmed" in claims(place)[0]
    told = "Standard deviation over seeds, perplexity, test: 3.2% of the mean"
    assert any(text.startswith(told) for text in notes(build(place)))
    place.commit("rnn", 3, 999.0).unlink()
    assert not any("deviation" in text for text in notes(build(place)))
    assert claims(place)[0].endswith("18.4% better (3 and 2 seeds): confirmed.")  # a deviation too few


def test_a_claim_within_three_standard_errors_is_not_decided(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 4 * step)
        place.commit("sum-2", seed, 100.0 + 4 * step)
    assert overview(build(place))[3:] == ("", "", "", "", "4.0%")
    for rnn, outcome in ((115.0, "not decided: under three standard errors"), (120.0, "confirmed")):
        place.commit("rnn", 1, rnn)
        error = 0.04 * math.hypot(100 / rnn, math.sqrt(3)) / math.sqrt(3)
        distance = (1 - 100 / rnn) / error
        assert claims(place)[0].endswith(f"({distance:.1f} standard errors, 3 and 1 seeds): {outcome}.")
    place.commit("rnn", 1, 115.0)
    assert overview(build(place))[3:] == ("", "", "", "1", "4.0%")


def test_a_claim_of_little_is_decided_by_the_distance_from_it(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + step)
        place.commit("rnn", seed, 130.0 + 1.3 * step)
    for value, margin, outcome in (
        (99.0, 0.01, "not decided: under three standard errors"),
        (104.0, 0.06, "confirmed"),
    ):
        place.commit("sum-3", 1, value)
        distance = margin / 0.01 / math.hypot(value / 100, 1 / math.sqrt(3))
        assert claims(place)[0].endswith(
            f"({distance:.1f} standard errors from 2%, 1 and 3 seeds): {outcome}."
        )


def test_validation_says_which_of_several_rows_a_claim_is_judged_by(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    place.commit("sum-2", 1, 104.0, valid_ppl=140.0)
    place.commit("max-2", 1, 125.0, valid_ppl=130.0)
    assert "Ours: Sum, order 3: 100; Max, order 2: 125; 20.0% better" in claims(place)[0]


def test_a_claim_between_recipes_is_not_judged(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("max-2", 1, 100.0)
    place.commit(
        "rnn", 1, 120.0, config={"model": {"_target_": "Rnn", "hidden_size": 400}, "weight_noise": 1}
    )
    assert claims(place)[0].endswith("16.7% better (one seed each): not judged (not by one recipe).")


def test_a_table_has_its_line_in_the_overview(place: Any, broken: Any) -> None:
    """Ours beside the published: without the row by dynamic evaluation, marked while a number is not verified."""
    assert overview(build(place)) == ("Toy: order and pooling", "0 of 4", "", "", "", "", "", "")
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("rnn", 1, 200.0)
    place.commit("max-2", 1, 121.0)
    assert overview(build(place))[1:3] == ("2 of 4", "+10.0%")
    place.commit("sum-2", 1, 110.99)
    place.commit("sum-3", 1, 113.4)
    assert overview(build(place))[1:] == ("4 of 4", "+5.0% (+0.0% to +10.0%)†", "1", "", "2", "", "")


def test_a_time_of_another_machine_is_not_compared(place: Any, broken: Any) -> None:
    broken("metric: test_ppl", "metric: seconds_per_epoch")
    place.commit("sum-2", 1)
    assert overview(build(place))[1:3] == ("1 of 4", "")


def test_the_overview_leads_to_the_headings(place: Any) -> None:
    title = "HORNN, section 4.1.1: weights, time"
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", text.replace("Toy: order and pooling", title))
    place.commit("sum-2", 1)
    table = build(place)
    assert f"| [{title}](#hornn-section-411-weights-time) | 1 of 4 |" in contents([table])
    assert markdown(table, place.folder).startswith(
        f"### {title}\n\nNobody 2000, table 1; perplexity, test\n"
    )


# -- files ---------------------------------------------------------------------------------------------------


def test_markdown_is_a_whole_table_with_links(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    lines = markdown(build(place), place.folder / "docs").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {rows[0].count("|")}
    assert "[seed 1](../outputs/tables/toy/rnn-seed1.json), seed 2 not run" in rows[2]
    assert "Stack &lt;RNN>" in rows[-1]


def test_csv_holds_full_precision(place: Any) -> None:
    place.commit("sum-2", 1, 100.123456789)
    place.commit("sum-2", 2, 101.0)
    rows = {row["row"]: row for row in csv.DictReader(io.StringIO(comma_separated(build(place))))}
    assert float(rows["sum-2"]["mean"]) == (100.123456789 + 101.0) / 2
    assert rows["sum-2"]["seeds"] == "2"
    assert rows["sum-3"]["verified"] == "False"
    assert rows["stack"]["status"] == "not built"
    assert len(rows) == 5


def test_latex_escapes_and_has_equal_columns(place: Any) -> None:
    place.commit("rnn", 1, 120.0, dirty=True)
    text = latex(build(place))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    columns = text.partition(r"\begin{tabular}{")[2].partition("}")[0]
    assert {row.count(" & ") + 1 for row in rows} == {len(columns)}
    assert r"123\ddag{}" in text
    assert "±" not in text


def test_committed_only_sees_no_record(place: Any) -> None:
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    assert build(place, committed_only=True).measured == 0
    assert build(place).measured == 1


def test_a_record_without_a_sweep_file_is_no_warning(place: Any) -> None:
    place.record(
        {"row": "model=rnn", "seed": 1, "status": "done", "result": place.result(1, 9.0)}, sweep="adhoc-1"
    )
    assert build(place).warnings == ()
    assert json.loads((place.results / "sweeps" / "adhoc-1.json").read_text())["sweep"] == "adhoc-1"
