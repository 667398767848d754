"""Grids: the rows that they make, what is wrong with one, their figures."""

import csv
import re
from typing import Any

import pytest

from hornn.dashboard import cells
from hornn.reporting.commands import write_pages, write_report
from hornn.reporting.figures import draw_figures
from hornn.reporting.grid_rows import short_names
from reporting.place import Place, read_sweep, table_of

GRID = """
defaults:
  - override /experiment: toy/text
sweep:
  name: net
  title: "Net"
  paper: "no paper"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1]
  rows:
    - {name: wide, label: "Wide RNN", run: [model=rnn, model.hidden_size=900]}
  labels: {hornn: HORNN, model.hidden_size: "{} units"}
  grid:
    model: [rnn, hornn]
    model.order: [2, 3]
    model.hidden_size: [8, 16]
"""
NAMES = ["rnn-hidden_size8", "rnn-hidden_size16"] + [
    f"hornn-order{order}-hidden_size{size}" for order in (2, 3) for size in (8, 16)
]


def fill(place: Place) -> None:
    for number, name in enumerate(["wide", *NAMES]):
        place.commit(name, 1, 100.0 + number, sweep="net", num_parameters=1000 + 100 * number)


def test_each_combination_is_a_row_and_keys_that_a_model_lacks_are_left_out(place: Place) -> None:
    sweep = read_sweep(place.write_sweep("net", GRID))
    assert [row.name for row in sweep.rows] == ["wide", *NAMES]
    rows = {row.name: row for row in sweep.rows}
    assert rows["rnn-hidden_size8"].run == ("model=rnn", "model.hidden_size=8")
    assert rows["hornn-order2-hidden_size16"].run == ("model=hornn", "model.order=2", "model.hidden_size=16")
    assert rows["hornn-order2-hidden_size16"].label == "HORNN, order 2, 16 units"
    assert not any(row.published for row in sweep.rows)
    assert rows["hornn-order2-hidden_size16"].recipe.config["model"]["order"] == 2
    assert len({row.identity for row in sweep.rows}) == 7


def test_a_row_keeps_its_name_when_values_are_added(place: Place) -> None:
    before = {row.name: row.identity for row in read_sweep(place.write_sweep("net", GRID)).rows}
    more = GRID.replace("[2, 3]", "[1, 2, 3, 4]").replace("[rnn, hornn]", "[hornn_max, rnn, hornn]")
    after = {row.name: row.identity for row in read_sweep(place.write_sweep("net", more)).rows}
    assert before.items() <= after.items()
    assert len(after) == 1 + 2 + 2 * 4 * 2


def test_an_axis_may_name_lists_of_overrides(place: Place) -> None:
    named = "cell: {plain: [model=rnn], two: [model=hornn, model.order=2, optimizer.lr=1e-2]}"
    text = GRID.replace("model: [rnn, hornn]\n    model.order: [2, 3]", named).replace(
        "hornn: HORNN", "two: HORNN"
    )
    sweep = read_sweep(place.write_sweep("net", text))
    assert [row.name for row in sweep.rows][1:] == [
        *("plain-hidden_size8", "plain-hidden_size16", "two-hidden_size8", "two-hidden_size16")
    ]
    assert sweep.rows[3].run == ("model=hornn", "model.order=2", "optimizer.lr=1e-2", "model.hidden_size=8")
    assert sweep.rows[3].place == {"cell": "two", "model.hidden_size": 8}


def test_names_are_the_last_words_of_keys_where_these_differ() -> None:
    assert short_names(["model", "model.bias", "network.bias", "optimizer.lr"]) == {
        "model": "model",
        "model.bias": "model.bias",
        "network.bias": "network.bias",
        "optimizer.lr": "lr",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("model.order:", "model.ordr:", "sweep.grid: no run of the grid has a key 'model.ordr'"),
        ("[rnn, hornn]", "[rnn, horn]", "sweep.grid: unknown model 'horn'; it is one of: hornn, hornn_max"),
        ("[2, 3]", "2", "sweep.grid: model.order must list values, or name lists of overrides, got 2"),
        ("[2, 3]", "[]", "sweep.grid: model.order must list values, or name lists of overrides, got []"),
        ("[2, 3]", "[2, 2]", "sweep.grid: model.order lists a value twice: [2, 2]"),
        ("[2, 3]", "[[2], [3]]", "sweep.grid: a value of model.order must be a word, a number, true, false"),
        ("[2, 3]", '["a b"]', "sweep.grid: a value of model.order must be a word, a number, true, false"),
        ("[2, 3]", "{two: [model.order=2]}", "sweep.grid: model.order is a key of the config: list its"),
        ("model.order:", "seed:", "sweep.grid: seed is no axis: give sweep.seeds"),
        ("model.order: [2, 3]", "tall: {a: model.order=2}", "tall: 'a' must list overrides KEY=VALUE, got"),
        ("model.order: [2, 3]", "tall: {a b: [model.order=2]}", "tall: a name has letters, digits and . _ -"),
        ("model.order: [2, 3]", "tall: {a: [model=rnn]}", "'a' of tall sets model, which is an axis itself"),
        ("model.order:", "1:", "sweep.grid: an axis is called after a key of the config, got 1"),
        ("  grid:\n    model: [rnn, hornn]", "  grid: 3\n  x:\n    model: [rnn]", "sweep: unknown key 'x'"),
        ('"{} units"', "3", "sweep.labels: model.hidden_size must be put in words, got 3"),
        (
            "{hornn: HORNN",
            "{horn: HORNN",
            "sweep.labels: the grid has no 'horn'; it has: hornn, model, model.",
        ),
        (
            GRID[GRID.index("  grid:") :],
            "",
            "sweep.grid must hold axes, such as model.order: [2, 3], got None",
        ),
        ("hidden_size=900", "hidden_size=8", "rows 'wide' and 'rnn-hidden_size8' have the same run"),
        ("name: wide", "name: rnn-hidden_size8", "have the same name rnn-hidden_size8: keep one"),
        (
            "  labels:",
            "  figure: {x_label: o}\n  labels:",
            "a grid has a figure for each axis",
        ),
    ],
)
def test_a_wrong_grid_is_refused_in_one_line(place: Place, old: str, new: str, message: str) -> None:
    assert old in GRID
    path = place.write_sweep("net", GRID.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_sweep(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_grid_has_a_figure_for_each_axis_of_numbers(place: Place) -> None:
    place.write_sweep("net", GRID)
    fill(place)
    table = table_of(place, "net")
    by_order, by_size = draw_figures(table)[:2]
    assert [label for label, _ in by_order.legend] == [
        *("rnn, 8 units", "rnn, 16 units", "HORNN, 8 units", "HORNN, 16 units")
    ]
    assert "dotted: rows without order." in by_order.panels[0].caption
    assert [panel.caption.partition(".")[0] for panel in by_size.panels] == [
        "perplexity, test against units",
        "perplexity, test against the number of weights",
        "perplexity, test against the training time of the best run, at the pace of the fastest, on cpu (abacus)",
    ]
    rows = ("rnn", "HORNN, order 2", "HORNN, order 3")
    assert [label for label, _ in by_size.legend] == [
        f"{row}, {size} units" for row in rows for size in (8, 16)
    ]
    ticks = re.findall(r"<text[^>]*>([^<]+)</text>", by_size.panels[0].svg)
    assert {"8", "16"} <= set(ticks)


def test_a_grid_of_words_alone_has_a_figure(place: Place) -> None:
    place.write_sweep("net", GRID)
    place.commit("hornn-order2-hidden_size8", 1, sweep="net")
    place.commit("rnn-hidden_size8", 1, 90.0, sweep="net")
    (by_model,) = [
        plot for plot in draw_figures(table_of(place, "net")) if "against model" in plot.panels[0].caption
    ]
    words = re.findall(r"<text[^>]*>([^<]+)</text>", by_model.panels[0].svg)
    assert {"rnn", "HORNN"} <= set(words)


def test_an_axis_of_one_measured_value_has_no_figure(place: Place) -> None:
    place.write_sweep("net", GRID)
    place.commit("hornn-order2-hidden_size8", 1, sweep="net")
    place.commit("hornn-order3-hidden_size8", 1, 90.0, sweep="net")
    captions = [panel.caption for plot in draw_figures(table_of(place, "net")) for panel in plot.panels]
    assert sum(caption.startswith("perplexity, test against order") for caption in captions) == 1
    assert not any("against units" in caption or "against model" in caption for caption in captions)


def test_every_page_shows_a_grid(place: Place) -> None:
    place.write_sweep("net", GRID)
    report = place.results / "report"
    write_report(place.results, place.sweeps, report)
    assert "0 of 7 rows are measured. `python src/train.py -m sweeps=net`" in (report / "net.md").read_text()
    assert (report / "net.md").read_text().count("not run") == 7
    fill(place)
    write_report(place.results, place.sweeps, report)
    with (report / "net.csv").open() as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["wide", *NAMES]
    assert "against the number of weights" in (report / "index.html").read_text()
    write_pages(place.results, place.sweeps, place.folder)
    page = place.results / "tables" / "net"
    assert "![Net](figure.svg)" in (page / "README.md").read_text()
    header, lines = cells(table_of(place, "net"))
    shown: dict[str, Any] = {
        line[header.index("row")]: dict(zip(header, line, strict=True)) for line in lines
    }
    assert shown["hornn-order3-hidden_size8"]["group"] == "HORNN, 8 units"
    assert shown["hornn-order3-hidden_size8"]["x"] == 3.0


def job(row: str, seed: int, score: float, place: Place) -> dict[str, Any]:
    words = [*row.split(), "trainer.max_steps=2", f"seed={seed}"]
    return {
        "row": row,
        "seed": seed,
        "status": "done",
        "overrides": words,
        "result": place.result(seed, score, config={"model": {"hidden_size": 3}}),
    }


def test_a_sweep_from_the_command_line_has_figures_by_what_its_jobs_differ_in(place: Place) -> None:
    rows = [f"model={model} model.hidden_size={size}" for model in ("rnn", "hornn") for size in (50, 100)]
    place.record(
        *(job(row, seed, 100.0 + at, place) for at, row in enumerate(rows) for seed in (1, 2)), sweep="mine"
    )
    write_report(place.results, place.sweeps, place.results / "report")
    page = (place.results / "report" / "index.html").read_text()
    assert "perplexity, test against hidden size. A line for each model" in page
    text = (place.results / "report" / "mine.md").read_text()
    assert "| model=rnn model.hidden_size=50 | 100.0 ± 0.0 |" in re.sub(r" \(n = 2\)", "", text)
    assert "departs from the recipe" not in text
