"""What a row says of runs that are missing or doubtful."""

import json
import re
from typing import Any

import pytest

from hornn.reporting.cost_panels import training_times
from hornn.reporting.lines import training_seconds
from hornn.reporting.markdown import table_markdown
from hornn.reporting.notes import table_notes, what_is_missing
from reporting.place import SWEEP, cells_of, line_of, table_of


def test_the_record_says_how_far_the_runs_are(place: Any) -> None:
    place.record(
        {"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)},
        {"row": "rnn", "seed": 2, "status": "running", "name": "aaaa"},
        {"row": "sum-2", "seed": 1, "status": "failed", "error": "killed (signal 9)"},
        {"row": "sum-2", "seed": 2, "status": "queued"},
        {"row": "sum-3", "seed": 1, "status": "done"},
        {"row": "max-2", "seed": 1, "status": "failed", "result": place.result(1, 0.0, status="diverged")},
    )
    table = table_of(place)
    assert line_of(table, "rnn").status == "seed 2 queued", "nobody works on it, and it left nothing"
    assert line_of(table, "sum-2").status == "seed 1 failed, seed 2 queued"
    assert line_of(table, "sum-2").marks == ("seed 1 failed: killed (signal 9)",)
    assert line_of(table, "sum-3").status == "seed 1 lost, seed 2 not run"
    assert line_of(table, "max-2").status == "seed 1 diverged, seed 2 not run"
    assert cells_of(table, "max-2")["measured"] == ""
    assert "With `hydra.sweeper.retry_failed=true` it also repeats what failed." in "\n".join(
        table_notes(table)
    )


def test_a_pause_does_not_count_as_speed(place: Any) -> None:
    paused = [
        {"epoch": n, "seconds": seconds, "valid_ppl": 100.0} for n, seconds in enumerate((10, 900, 12), 1)
    ]
    place.commit("rnn", 1, seconds_per_epoch=307.3, metrics=paused)
    place.commit("rnn", 2, seconds_per_epoch=14.0, metrics=[])
    assert line_of(table_of(place), "rnn").seconds == 12.0, "of the fastest run"
    assert cells_of(table_of(place), "rnn")["s/epoch"] == "12.0"
    assert "s/epoch: the median epoch of the row's fastest run." in table_notes(table_of(place))


@pytest.mark.parametrize(
    ("keys", "measured"),
    [(["seconds_per_epoch"], (137.0, 61.0, 59.0)), (["test_ppl", "seconds_per_epoch"], (59.0,))],
)
def test_a_row_has_the_time_of_its_fastest_run(
    place: Any, keys: list[str], measured: tuple[float, ...]
) -> None:
    """Other work slows a run. In a table about time, where each run is alone, all runs count.

    The figure counts the epochs of the best run.
    """
    metrics = ", ".join(f"{{key: {key}, label: {key}}}" for key in keys)
    one = 'metric: test_ppl\n  metric_label: "perplexity, test"'
    place.write_sweep("toy", re.sub(r"\n *published: .*", "", SWEEP.replace(one, f"metric: [{metrics}]")))
    for seed, seconds in ((1, 137.0), (2, 61.0), (3, 59.0)):
        records = [{"epoch": n, "seconds": seconds} for n in range(1, 6 - seed)]
        place.commit("rnn", seed, 99.0 + seed, metrics=records)
    table = table_of(place)
    assert line_of(table, "rnn").scores["seconds_per_epoch"].values == measured
    assert training_times(table.lines).seconds == {"rnn": 4 * 59.0}
    place.commit("rnn", 3, device="gpu", runs_on_gpu=1)
    values = line_of(table_of(place), "rnn").scores["seconds_per_epoch"].values
    assert values == (), "its seeds ran on different devices"


@pytest.mark.parametrize(("ends", "expected"), [([0.25], 40.0), ([1, 1.25], 36.0), ([1, 2, 2.5], 37.0)])
def test_a_part_of_an_epoch_is_no_epoch(place: Any, ends: list[float], expected: float) -> None:
    """`trainer.max_steps` ends a run within an epoch."""
    whole = [36.0, 38.0][: len(ends) - 1]
    metrics = [
        {"epoch": end, "seconds": seconds, "valid_ppl": 100.0}
        for end, seconds in zip(ends, [*whole, 10.0], strict=True)
    ]
    place.commit("rnn", 1, seconds_per_epoch=40.0, metrics=metrics)
    line = line_of(table_of(place), "rnn")
    assert line.seconds == expected
    assert training_seconds(line.runs[0].result) == pytest.approx(expected * ends[-1])


def test_a_row_with_seeds_of_its_own_misses_no_others(place: Any) -> None:
    place.write_sweep("toy", SWEEP.replace("run: [model=rnn]", "run: [model=rnn]\n      seeds: [2]"))
    assert line_of(table_of(place), "rnn").status == "not run"
    place.commit("rnn", 2, 120.0)
    assert line_of(table_of(place), "rnn").status == ""


def test_seeds_that_miss_alike_are_told_together(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", text.replace("seeds: [1, 2]", "seeds: [1, 2, 3, 4]"))
    place.commit("rnn", 2)
    place.record({"row": "rnn", "seed": 3, "status": "failed"})
    assert line_of(table_of(place), "rnn").status == "seeds 1, 4 not run, seed 3 failed"


@pytest.mark.parametrize("seed", [1, 2])
def test_results_of_two_configs_are_not_averaged(place: Any, seed: int) -> None:
    place.commit("rnn", 1, 120.0)
    place.record(
        {"row": "rnn", "seed": seed, "status": "done", "result": place.result(seed, 90.0, name="bbbb")}
    )
    table = table_of(place)
    line = line_of(table, "rnn")
    assert line.status == "conflict"
    assert cells_of(table, "rnn")["measured"] == ""
    keep, again = (
        "`python src/report.py --keep` keeps one run of a seed",
        "run the seeds that depart again",
    )
    remedy = f": {keep}" if seed == 1 else f": {again}, by the row's own command"
    mark = f"runs of different configs are not averaged (aaaa: seed 1; bbbb: seed {seed})"
    assert line.marks == (f"{mark}{remedy}",)
    assert line.marks[0] in table_markdown(table)


def test_a_remedy_that_would_be_refused_is_not_given(place: Any) -> None:
    """`--keep` leaves a result that keeps to the recipe for none that departs from it."""
    place.commit("rnn", 1, 120.0)
    settings = {"config": {"trainer": {"max_epochs": 1}}}
    result = place.result(1, 90.0, name="bbbb", **settings)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    assert line_of(table_of(place), "rnn").marks[0] == (
        "runs of different configs are not averaged (aaaa: seed 1; bbbb: seed 1): run the seeds that depart again, by "
        "the row's own command"
    )


def test_a_seed_of_other_settings_is_told_by_them(place: Any) -> None:
    """It takes the row's numbers away, so the reader needs the setting and the seed."""
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 130.0, name="bbbb", config={"trainer": {"max_epochs": 1}})
    mark = "departs from the recipe: trainer.max_epochs=1, not 20 (seed 2)"
    assert line_of(table_of(place), "rnn").marks[-1] == mark


def test_a_table_that_lacks_nothing_but_a_choice_names_no_command(place: Any, broken: Any) -> None:
    broken("seeds: [1, 2]", "seeds: [1]")
    for row in ("rnn", "sum-2", "sum-3", "max-2"):
        place.commit(row, 1)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 90.0, name="bbbb")})
    assert line_of(table_of(place), "rnn").status == "conflict"
    assert what_is_missing(table_of(place)) == ["3 of 4 rows are measured."]


def test_a_run_of_ones_own_is_told_beside_the_committed_result(place: Any) -> None:
    place.commit("rnn", 1, 120.0, finished="2026-01-01T00:00:00+00:00")
    own = place.result(1, 118.04, finished="2026-02-01T00:00:00+00:00")
    record = place.record({"row": "rnn", "seed": 1, "status": "done", "result": own})
    line = line_of(table_of(place), "rnn")
    assert line.scores["test_ppl"].values == (120.0,)
    (mark,) = line.marks
    said = "seed 1 was also run here, and the committed result counts: perplexity, test 118.0 ("
    assert mark.startswith(said)
    assert mark.endswith("/seed=1/result.json)")
    assert not line_of(table_of(place, committed_only=True), "rnn").marks
    same = {**own, "finished": "2026-01-01T00:00:00+00:00"}
    (place.folder / json.loads(record.read_text())["jobs"][0]["run_dir"] / "result.json").write_text(
        json.dumps(same)
    )
    assert not line_of(table_of(place), "rnn").marks, "it is the run that was committed"


def test_a_committed_result_of_an_older_config_is_marked(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.record({"row": "rnn", "seed": 1, "status": "queued", "name": "bbbb"})
    line = line_of(table_of(place), "rnn")
    assert line.scores["test_ppl"].values == (120.0,)
    assert line.marks == ("its runs on record are of different configs (aaaa: seed 1; bbbb: seed 1)",)


def test_a_result_by_another_recipe_is_marked(place: Any) -> None:
    config = {
        "model": {"hidden_size": 400, "order": 2},
        "data": {"unit": "word"},
        "optimizer": {"lr": 0.1},
        "trainer": {"max_epochs": 15},
        "weight_noise": 0.1,
    }
    place.commit("sum-2", 1, 110.0, config=config)
    place.commit("sum-3", 1, 110.0, config={**config, "trainer": {}, "weight_noise": 0})
    unnamed = {**config, "trainer": {"gradient_clip_val": 1}, "weight_noise": 0}
    place.commit("max-2", 1, 110.0, config={**unnamed, "model": {}, "network": {}})
    table = table_of(place)
    assert line_of(table, "sum-2").marks == (
        "departs from the recipe: weight_noise=0.1, not 0.0; trainer.max_epochs=15, not 20",
    )
    assert line_of(table, "sum-3").marks == ("departs from the recipe: model.order=2, not 3",)
    assert line_of(table, "max-2").marks == (
        "departs from the recipe: trainer.gradient_clip_val=1, not given",
    )


def test_a_result_that_started_from_another_network_is_marked(place: Any, broken: Any) -> None:
    broken("name: sum-3\n", "name: sum-3\n      start: sum-2\n")
    place.commit("sum-2", 1, 110.0, name="bbbb")
    path = "outputs/hornn/toy/{}/seed=1/best.ckpt"
    place.commit("sum-3", 1, 108.0, config={"init_from": path.format("bbbb")})
    assert line_of(table_of(place), "sum-3").marks == ()
    place.commit("sum-3", 1, 108.0, config={"init_from": path.format("cccc")})
    mark = f"departs from the recipe: init_from={path.format('cccc')}, no run of sum-2 with this seed"
    assert line_of(table_of(place), "sum-3").marks == (mark,)


def test_a_start_that_was_trained_anew_is_told(place: Any, broken: Any) -> None:
    broken("name: sum-3\n", "name: sum-3\n      start: sum-2\n")
    later, earlier = "2026-02-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"
    place.commit("sum-2", 1, 110.0, name="bbbb", finished=later)
    started = {"config": {"init_from": "outputs/hornn/toy/bbbb/seed=1/best.ckpt"}}
    place.commit("sum-3", 1, 108.0, **started, starts=[{"started": later}])
    assert line_of(table_of(place), "sum-3").marks == ()
    place.commit("sum-3", 1, 108.0, **started, starts=[{"started": earlier}, {"started": later}])
    mark = "sum-2 was trained anew after seed 1 of this row began: overwrite=true starts from the new weights"
    assert line_of(table_of(place), "sum-3").marks == (mark,)


def test_a_mixture_of_another_network_is_marked(place: Any, broken: Any) -> None:
    broken("name: sum-3\n", "name: sum-3\n      start: [sum-2, rnn]\n")
    place.commit("sum-2", 1, 110.0, name="bbbb")
    place.commit("rnn", 1, 120.0, name="dddd")
    paths = {name: f"outputs/hornn/toy/{name}/seed=1/best.ckpt" for name in ("bbbb", "dddd", "cccc")}
    place.commit("sum-3", 1, 108.0, config={"init_from": [paths["bbbb"], paths["dddd"]]})
    assert line_of(table_of(place), "sum-3").marks == ()
    place.commit("sum-3", 1, 108.0, config={"init_from": [paths["bbbb"], paths["cccc"]]})
    mark = f"departs from the recipe: init_from={paths['cccc']}, no run of sum-2 or rnn with this seed"
    assert line_of(table_of(place), "sum-3").marks == (mark,)


def test_a_mixture_of_fewer_networks_is_marked(place: Any, broken: Any) -> None:
    broken("name: sum-3\n", "name: sum-3\n      start: [sum-2, rnn]\n")
    place.commit("sum-2", 1, 110.0, name="bbbb")
    place.commit("rnn", 1, 120.0, name="dddd")
    place.commit("sum-3", 1, 108.0, config={"init_from": ["outputs/hornn/toy/bbbb/seed=1/best.ckpt"]})
    mark = "departs from the recipe: init_from names no run of rnn with this seed"
    assert line_of(table_of(place), "sum-3").marks == (mark,)


def test_validation_on_the_test_text_is_marked(place: Any) -> None:
    place.commit("rnn", 1, 120.0, corpus={"unit": "word", "valid_is_test": True})
    assert line_of(table_of(place), "rnn").marks[0].startswith("validation reads the test text")


def test_dynamic_evaluation_is_missed_where_other_seeds_have_it_alone(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("metric: test_ppl", "metric: dynamic.test_ppl")
    place.write_sweep("toy", text)
    place.commit("rnn", 1, 100.0)
    assert line_of(table_of(place), "rnn").marks == ()
    place.commit("rnn", 2, 100.0, dynamic={"test_ppl": 90.0})
    assert line_of(table_of(place), "rnn").marks == ("1 of its 2 results hold no dynamic.test_ppl",)


def test_seeds_of_an_edited_cell_are_not_averaged(place: Any) -> None:
    """Of a cell of somebody's own nothing else tells its versions apart."""
    for seed, source in ((1, "a" * 64), (2, "b" * 64)):
        place.commit("rnn", seed, 100.0, code={"class": "mine.Cell", "source": source})
    line = line_of(table_of(place), "rnn")
    assert (line.status, line.scores["test_ppl"].values) == ("conflict", ())
    each = f"Cell {'a' * 10}: seed 1; Cell {'b' * 10}: seed 2"
    remedy = "overwrite=true trains a seed anew"
    assert line.marks == (f"runs of different sources are not averaged ({each}): {remedy}",)


@pytest.mark.parametrize("code", [{"class": "mine.Cell", "source": "a" * 64}, {"class": "mine.Cell"}, None])
def test_seeds_of_one_source_are_averaged(place: Any, code: Any) -> None:
    """So are seeds whose source is not on record."""
    place.commit("rnn", 1, 100.0, code={"class": "mine.Cell", "source": "a" * 64})
    place.commit("rnn", 2, 102.0, **({"code": code} if code else {}))
    line = line_of(table_of(place), "rnn")
    assert (line.status, line.marks, line.scores["test_ppl"].values) == ("", (), (100.0, 102.0))


def test_seeds_of_several_sources_of_a_cell_of_the_package_have_a_mark(place: Any) -> None:
    """Also behind one from before results named their code."""
    place.commit("rnn", 0, 100.0)
    for seed in (1, 2):
        place.commit("rnn", seed, 100.0, code={"class": "hornn.cells.elman.Rnn", "source": f"{seed}" * 64})
    line = line_of(table_of(place), "rnn")
    assert line.scores["test_ppl"].values == (100.0, 100.0, 100.0)
    assert line.marks == (
        "its seeds come from several sources of hornn.cells.elman.Rnn, which their files name",
    )
