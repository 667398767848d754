"""What the page's script knows of the runs."""

import json
import re
import zlib
from base64 import b64decode
from typing import Any

import pytest

from hornn.reporting.json_table import seeds_of, table_json
from hornn.reporting.packing import differences, packed
from hornn.reporting.run_data import address, curves, page_data
from hornn.reporting.runs import Run
from reporting.place import SWEEP, Place, line_of, table_of


@pytest.fixture
def data(filled: Place) -> dict[str, Any]:
    return page_data([table_of(filled)], filled.results / "report", {})


def test_a_row_has_its_runs_and_the_mean_of_their_numbers(data: dict[str, Any]) -> None:
    row = data["rows"]["toy/sum-2"]
    assert row["numbers"]["test_ppl"] == (112.0, "112.0 ± 0.7")
    assert row["published"] == {"test_ppl": "111"}
    assert [data["runs"][number]["seed"] for number in row["runs"]] == [1, 2]
    assert row["best"] == 1, "by validation"
    assert "toy/rnn" not in data["rows"], "nothing of it is measured"
    assert data["rows"]["toy/sum-3"]["published"] == {"test_ppl": "108†"}
    assert data["signs"]["†"].startswith("recalled or second-hand")


def test_a_mixture_says_its_weights_and_leaves_no_model(place: Place) -> None:
    notes = ["weight 0.400: a/best.ckpt", "weight 0.600: b/best.ckpt"]
    chosen = {"choices": {"model": "rnn", "data": "ptb"}}
    mixed = {"data": {}, "init_from": ["a/best.ckpt", "b/best.ckpt"]}
    place.commit("rnn", 1, 120.0, notes=notes, config=mixed, **chosen)
    place.commit("rnn", 2, 121.0, notes=[7, "x" * 10_000], config={"data": {}}, **chosen)
    first, second = page_data([table_of(place)], place.results / "report", {})["runs"]
    assert (first["notes"], first["folder"]) == (notes, "")
    assert [len(note) for note in second["notes"]] == [2000]
    assert second["folder"] == "outputs/rnn/ptb/aaaa/seed=2"


def test_equal_configs_are_held_once(data: dict[str, Any]) -> None:
    assert data["configs"]["keys"] == ["model", "data"]
    assert data["configs"]["values"] == [["hornn", "text"], ["hornn_max", "text"]]
    assert [run["config"] for run in data["runs"]] == [0, 0, 0, 1]


def test_a_run_older_than_a_key_had_its_neutral_value(place: Place) -> None:
    trained = {"model": "gru", "optimizer": "sgd"}
    place.commit("sum-2", 1, choices=trained, config={"lr": 1})
    place.commit(
        "sum-2",
        2,
        choices=trained,
        config={"lr": 1, "model": {"reset_after": True}, "recurrent_dropout": 0.5},
    )
    place.commit("sum-3", 1, choices={"model": "kn"}, config={"lr": 1})
    keys, values = page_data([table_of(place)], place.results / "report", {})["configs"].values()
    said = [dict(zip(keys, each, strict=True)) for each in values]
    assert [each["model.reset_after"] for each in said] == [True, True, ""]
    assert [each["recurrent_dropout"] for each in said] == [0.0, 0.5, ""], "counts are not trained"


def test_every_run_has_the_time_of_its_epochs(data: dict[str, Any]) -> None:
    """As its table, which need not ask for it."""
    assert {run["numbers"]["seconds_per_epoch"] for run in data["runs"]} == {(12.5, "12.5")}
    assert data["rows"]["toy/sum-2"]["numbers"]["seconds_per_epoch"] == (12.5, "12.5")


def test_scores_have_names_and_say_what_is_better(data: dict[str, Any]) -> None:
    assert data["measures"]["test_ppl"] == ("perplexity, test", -1)
    assert data["measures"]["num_parameters"] == ("weights", 0)


def test_scores_come_before_costs_and_costs_before_the_rest(place: Place) -> None:
    """In whichever order the results hold them."""
    metrics = [{"lr": 0.1, "grad_norm": 2.0, "train_ppl": 9.0, "valid_ppl": 8.0, "epoch": 1, "seconds": 2.0}]
    memory = {"epochs": 4, "peak_memory_mb": 7.0, "valid_ppl": 8.0, "test_ppl": 7.0}
    place.commit("rnn", 1, **{"test_ppl": 7.0, **memory, "metrics": metrics})
    assert list(page_data([table_of(place)], place.results / "report", {})["measures"]) == [
        *("test_ppl", "valid_ppl", "train_ppl"),
        *("num_parameters", "epochs", "peak_memory_mb", "seconds_per_epoch"),
        *("lr", "grad_norm"),
    ]


def test_packed_runs_and_rows_are_columns(filled: Place) -> None:
    data = page_data([table_of(filled)], filled.results / "report", {})
    small = json.loads(zlib.decompress(b64decode(packed(data))))
    assert small["rows"]["address"] == ["toy/sum-2", "toy/sum-3", "toy/max-2"]
    assert small["rows"]["numbers"]["test_ppl"] == [[112.0, "112.0 ± 0.7"], None, None], "one seed: its run's"
    assert small["runs"]["numbers"]["test_ppl"][2] == [107.0, "107.0"]
    assert small["runs"]["curves"]["seconds"][0] == [1, 125, 125, 125], "12.5, 25.0, 37.5"


def test_curves_are_columns_and_each_epoch_has_its_own_time() -> None:
    records = [
        {
            "epoch": 1,
            "step": 10,
            "seconds": 2.0,
            "valid_nll": 4.6,
            "valid_ppl": 100.0,
            "tokens_per_second": 9,
        },
        {"epoch": 2, "step": 20, "seconds": 2.5, "valid_nll": 4.1, "valid_ppl": 64.0, "note": "odd"},
    ]
    found = curves(records, characters=False, timed=True)
    assert found == {"epoch": [1, 2], "step": [10, 20], "seconds": [2.0, 4.5], "valid_ppl": [100.0, 64.0]}
    short = curves([records[0] | {"seconds": 1000.0}, *records[1:]], characters=False, timed=True)
    assert short["seconds"] == [1000.0, 1002.0], "to four digits of all"
    assert curves(records, characters=True, timed=True)["valid_bpc"] == [6.644, 6.0]
    norms = [{"epoch": 1, "lr": 0.12345, "train_ppl": 123.456, "grad_norm": 1.2345, "max_grad_norm": 65.6}]
    assert curves(norms, characters=False, timed=False) == {
        "epoch": [1],
        "lr": [0.123],
        "train_ppl": [123.5],
        "grad_norm": [1.2],
        "max_grad_norm": [66.0],
    }
    music = [{"epoch": 1, "valid_nll": 7.5, "valid_accuracy": 0.3}]
    assert curves(music, characters=False, timed=True) == {
        "epoch": [1],
        "valid_nll": [7.5],
        "valid_accuracy": [0.3],
    }
    assert curves([], characters=False, timed=True) == {}
    assert "seconds" not in curves(records, characters=False, timed=False)


@pytest.mark.parametrize(
    ("curve", "small"),
    [
        ([3.528, 3.5, None, 3.6], [3, 3528, -28, None, 100]),
        ([0.00025, 1e-5], [5, 25, -24]),
        ([4, 7], [0, 4, 3]),
        ([12300.0, 12340.0], [0, 12300, 40]),
        ([4.297e31, 190.1], [None, 4.297e31, 190.1]),
        (["a text", 2], [None, "a text", 2]),
        ([], [0]),
    ],
)
def test_a_curve_is_packed_as_exact_differences(curve: list[Any], small: list[Any]) -> None:
    assert differences(curve) == small


def test_no_text_of_a_result_can_end_the_script(filled: Place) -> None:
    filled.commit("rnn", 1, 99.0, device="</script><script>alert(1)</script>")
    text = packed(page_data([table_of(filled)], filled.results / "report", {}))
    assert "<" not in text
    content = json.loads(zlib.decompress(b64decode(text)))
    assert "</script>" in json.dumps(content["origins"])


def test_samples_are_few_short_texts(filled: Place) -> None:
    texts = ["<b>a text</b>", 7, "x" * 9000, *["more"] * 20]
    filled.commit("rnn", 1, 99.0, samples={"epoch": 3, "temperature": "<hot>", "texts": texts})
    filled.commit("rnn", 2, 99.0, samples={"texts": "no list"})
    runs = page_data([table_of(filled)], filled.results / "report", {})["runs"]
    first, second = (run["samples"] for run in runs[:2])
    assert list(first) == ["texts", "epoch"]
    assert first["texts"][0] == "<b>a text</b>", "the page sets it as text"
    assert len(first["texts"]) < 11
    assert max(map(len, first["texts"])) == 2000
    assert second == {}


def test_an_address_is_as_browsers_write_it() -> None:
    assert address("toy", "model=lstm,a/b é", 1) == "toy/model%3Dlstm%2Ca%2Fb%20%C3%A9/1"


def test_a_time_that_does_not_count_has_no_seed(place: Any) -> None:
    """The first run shared its GPU."""
    place.commit("sum-2", 1, 111.5, device="NVIDIA", runs_on_gpu=3, tokens_per_second=100.0)
    place.commit("sum-2", 2, 112.5, device="NVIDIA", runs_on_gpu=1, tokens_per_second=200.0)
    line = line_of(table_of(place), "sum-2")
    assert seeds_of(line, "tokens_per_second") == [2]
    assert seeds_of(line, "test_ppl") is None


def test_a_table_as_json_has_every_seed_and_every_claim(filled: Place) -> None:
    content = json.loads(table_json(table_of(filled)))
    row = next(row for row in content["rows"] if row["row"] == "sum-2")
    assert row["scores"]["test_ppl"]["measured"] == [111.5, 112.5]
    assert row["seeds"] == [1, 2]
    assert content["folder"] == str(filled.results / "tables" / "toy")
    assert "results" not in row  # named by row and seed
    unbuilt = next(row for row in content["rows"] if row["row"] == "stack")
    assert {"seeds", "results", "num_parameters"}.isdisjoint(unbuilt)
    assert content["command"] == "python src/train.py -m sweeps=toy"
    assert content["lower_is_better"] is content["metrics"][0]["lower_is_better"] is True


def test_only_results_that_lie_elsewhere_are_named(place: Place) -> None:
    """Of a run that another table kept, beside the table's own."""
    for seed in (1, 2):
        place.commit("rnn", seed)
    other = place.commit("second-order", 1, sweep="other")
    table = table_of(place)
    shared = line_of(table, "sum-2")._replace(runs=(Run(1, "done", other, place.result(1, 111.5)),))
    rows = json.loads(table_json(table._replace(lines=(line_of(table, "rnn"), shared))))["rows"]
    assert "results" not in rows[0]
    assert rows[1]["results"] == ["../other/second-order-seed1.json"]


def test_a_score_that_some_results_lack_names_its_seeds(place: Place) -> None:
    metrics = "metric: [{key: test_ppl, label: ppl}, {key: test_accuracy, label: accuracy}]"
    text = re.sub(r"\n      published: .*", "", SWEEP)
    place.write_sweep("toy", re.sub(r"metric: test_ppl\n  metric_label: .*", metrics, text))
    place.commit("sum-2", 1)
    place.commit("sum-2", 2, test_accuracy=0.5)
    rows = {row["row"]: row for row in json.loads(table_json(table_of(place)))["rows"]}
    assert rows["sum-2"]["seeds"] == [1, 2]
    assert rows["sum-2"]["scores"]["test_accuracy"]["seeds"] == [2]
    assert "seeds" not in rows["sum-2"]["scores"]["test_ppl"]
