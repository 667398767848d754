"""Grids of a sweep file, and sweeps that have a name and no file, from their command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from outcome import Outcome
from reporting.place import read_sweep
from sweep.mini import TABLE, Launch, recorded, starts, write_table

pytestmark = pytest.mark.slow
ONE_EPOCH = "trainer.max_epochs=1"
GRID = """# @package _global_
defaults:
  - override /experiment: demo
sweep:
  name: mini
  title: "Mini"
  paper: "no paper"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1]
  rows:
    - {name: first, label: "First", run: [model=gru, model.hidden_size=30]}
    - {name: deep, label: "Deep", run: [model=gru, model.hidden_size=40], start: lstm-hidden_size10}
  grid:
    model: [lstm, hornn_fofe]
    model.order: [2, 3]
    model.hidden_size: [10, 20]
"""
NAMES = [
    *("lstm-hidden_size10", "lstm-hidden_size20"),
    *(f"hornn_fofe-order{order}-hidden_size{size}" for order in (2, 3) for size in (10, 20)),
]


def test_a_grid_s_rows_are_those_that_the_report_reads(launch: Launch) -> None:
    write_table(GRID)
    code, out, err = launch("sweeps=mini", ONE_EPOCH, "hydra.launcher.on_failure=stop", FAKE_FAIL="1")
    assert (code, err.partition(". ")[0]) == (2, "error: 1 of 8 jobs failed: first seed=1")
    assert out.startswith("mini: 0 of 8 done")
    assert [row for row, _ in recorded()] == ["first", "lstm-hidden_size10", "deep", *NAMES[1:]]
    read = read_sweep(Path("conf/sweeps/mini.yaml"))
    assert [row.name for row in read.rows] == ["first", "deep", *NAMES]
    runs = {row.name: row.run for row in read.rows}
    for (row, _), entry in recorded().items():
        assert [word for word in entry.overrides if word in (runs[row] or ())] == list(runs[row] or ())
    only = f"hydra.sweeper.only=[{NAMES[-1]}]"
    assert launch("sweeps=mini", ONE_EPOCH, only).code == 0
    assert recorded()[NAMES[-1], 1].status == "done"


@pytest.mark.thorough
def test_rows_of_a_grid_are_picked_by_their_names_with_seeds(launch: Launch) -> None:
    write_table(GRID)
    only = "hydra.sweeper.only=[hornn_fofe-order3-hidden_size20,deep]"
    code, _, err = launch("sweeps=mini", "sweep.seeds=[1,2]", only, ONE_EPOCH)
    assert (code, err) == (0, "")
    assert sorted(recorded()) == [
        (row, seed)
        for row in ("deep", "hornn_fofe-order3-hidden_size20", "lstm-hidden_size10")
        for seed in (1, 2)
    ]


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ("[lstm, hornn_fofe]", "[lstm, hornn]", ["model=rnn"], "sets model itself: the command line cannot"),
        ("model.order:", "model.ordr:", [], "sweep 'mini': grid: no run of the grid has a key 'model.ordr'"),
        ("[2, 3]", "2", [], "sweep 'mini': grid: model.order must list values"),
        ("[2, 3]", "[2, 2]", [], "sweep 'mini': grid: model.order lists a value twice"),
        ("[lstm, hornn_fofe]", "[lstm, horn]", [], "unknown model 'horn'"),
        ("2", "2", ["hydra.sweeper.only=[lstm]"], "no row 'lstm' to run; the table has: first, deep, lstm-"),
    ],
)
def test_a_wrong_grid_is_one_line(launch: Launch, old: str, new: str, words: list[str], message: str) -> None:
    write_table(GRID.replace(old, new, 1))
    code, _, err = launch("sweeps=mini", *words)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not starts()


def test_a_grid_is_no_single_run(folder: Path, command: Callable[..., Outcome]) -> None:
    write_table(GRID.replace(GRID[GRID.index("  rows:") : GRID.index("  grid:")], ""))
    code, _, err = command("train", "--config-dir=conf", "sweeps=mini")
    assert code == 2
    assert err == (
        "error: sweeps=mini is a grid: add -m to run it, or what one of its rows runs, such as model=lstm "
        "model.order=2 model.hidden_size=10\n"
    )


@pytest.mark.thorough
def test_a_sweep_may_have_a_name_without_a_file(launch: Launch) -> None:
    words = ["model=rnn,hornn_fofe", "model.hidden_size=5,6", "sweep.name=mine", ONE_EPOCH]
    code, out, err = launch(*words)
    assert (code, err) == (0, "")
    assert out.endswith("mine: 4 of 4 done\n")
    assert list(recorded("mine")) == [
        (f"model={model} model.hidden_size={size}", 1) for model in ("rnn", "hornn_fofe") for size in (5, 6)
    ]
    code, out, err = launch(*words)
    assert (code, out, err) == (0, "mine: 4 of 4 done\n" * 2, "")
    for size in (7, 8):
        assert launch("model=rnn", f"model.hidden_size={size}", "sweep.name=mine", ONE_EPOCH).code == 0
    assert len(recorded("mine")) == 6


@pytest.mark.parametrize(
    "words", [["model=rnn,lstm", "sweep.name=mini"], ["sweeps=other", "sweep.name=mini"]]
)
def test_a_sweep_is_not_called_like_the_file_of_another(launch: Launch, words: list[str]) -> None:
    Path("conf/sweeps/other.yaml").write_text(TABLE.replace("name: mini", "name: other"))
    code, _, err = launch(*words)
    assert (code, err) == (
        2,
        "error: sweep.name=mini is the name of a sweep file: give another one, or sweeps=mini\n",
    )
    assert not starts()
