"""Results as tables, and beside those of another measurement."""

import pytest

from bench.rows import timed
from hornn.bench import tables


def test_a_table_in_markdown():
    table = tables.render_section("step", [timed()]).splitlines()
    assert table[0].startswith("**Training step.**")
    assert table[2:] == [
        "| work | ours | backend | output layer | ms | other | other, ms | ratio | spread | rounds dropped |",
        "|---|---|---|---|---|---|---|---|---|---|",
        "| training step | `rnn` | eager | bf16 | 60.0 | nn.RNN | 100.0 | 0.60 | 0.50-0.70 | 3 |",
    ]


def test_marks_in_a_table():
    lines = tables.render_section(
        "step",
        [
            timed(quiet=False, rounds=60, dropped=50),
            timed(quiet=None, native=True),
            {**timed(), "missing": "no compiler", "backend": "native"},
            {**timed(), "missing": "no compiler", "backend": "native", "ours": "hornn"},
        ],
    ).splitlines()
    assert lines[4].endswith("| **never quiet**: 50 of 60 loud |")
    assert lines[5].endswith("| no filter |")
    assert "| bf16, native |" in lines[5]
    assert lines[6:] == ["", "Not measured: `rnn` native, `hornn` native: no compiler"]


def test_a_value_that_a_row_lacks_is_an_empty_cell():
    epoch = timed(epoch_seconds=92.9, published_seconds=None, published_ratio=None)
    assert tables.render_section("thesis", [epoch]).endswith("| 3 | 93 |  |  |")


def test_changes_since_another_measurement():
    then = [
        timed(ours_ms=80.0, ratio=0.4),
        timed(ours="gru"),
        timed(section="order"),
        timed(backend="native"),
    ]
    now = [timed(), timed(ours="lstm"), {**timed(backend="native"), "missing": "why"}]
    del now[2]["ours_ms"]
    (change,) = tables.compare_rows(now, then)
    assert change["change"] == pytest.approx(60 / 80)
    assert change["ratio_change"] == pytest.approx(0.6 / 0.4)
    assert change["noise"] is None
    (change,) = tables.compare_rows([timed()], [timed(quiet=False)])
    assert change["noise"] == "never quiet"
    memory = {"section": "memory", "ours": "rnn", "ours_mb": 90.0, "ratio": 0.5}
    (change,) = tables.compare_rows([memory], [{**memory, "ours_mb": 60.0}])
    assert (change["change"], change["ratio_change"], change["unit"]) == (1.5, 1.0, "MB")


@pytest.mark.parametrize(
    ("change", "slower"),
    [
        ({"ratio": 0.8, "spread": [0.65, 0.9]}, True),
        ({"ratio": 0.69, "spread": [0.65, 0.9]}, False),  # was measured then, too
        ({"ratio": 0.8, "spread": [0.55, 0.9]}, False),  # what was then is measured now, too
        ({"ratio": 0.4, "spread": [0.3, 0.5]}, False),
        ({"ratio": 0.8, "spread": [0.65, 0.9], "quiet": False}, False),
        ({"ratio": 0.8, "spread": [0.65, 0.9], "rounds": 4}, False),
    ],
)
def test_slower_is_what_the_spread_does_not_explain(change, slower):
    assert bool(tables.find_slower(tables.compare_rows([timed(**change)], [timed()]))) == slower


def test_larger_is_what_the_processes_do_not_explain():
    then = {"section": "memory", "work": "training", "ours": "rnn", "other": "nn.RNN", "other_mb": 100.0}
    then |= {"ours_mb": 50.0, "ours_range": [48.0, 53.0], "ratio": 0.5}
    for size, slower in ((54.0, True), (52.0, False)):
        now = {**then, "ours_mb": size, "ours_range": [size - 1, size], "ratio": size / 100}
        found = tables.find_slower(tables.compare_rows([now], [then]))
        assert found == (["memory, training, rnn: 0.54 of nn.RNN, was 0.50"] if slower else [])
