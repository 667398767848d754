"""Results as tables."""

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
