"""A table as Markdown."""

from typing import Any

from hornn.reporting.markdown import table_markdown
from reporting.place import table_of


def test_markdown_is_a_whole_table_with_links(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    lines = table_markdown(table_of(place), place.folder / "docs").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {rows[0].count("|")}
    assert "[seed 1](../outputs/tables/toy/rnn-seed1.json), seed 2 not run" in rows[2]
    assert "Stack &lt;RNN>" in rows[-1]


def test_the_seeds_of_a_row_are_those_that_it_measured(place: Any) -> None:
    """What became of the others stands behind them. Of its runs each is a link, whatever became of it."""
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 0.0, status="diverged")
    tables = place.results / "tables" / "toy"
    links = "[seed 1](rnn-seed1.json), [seed 2](rnn-seed2.json)"
    for folder, told in ((None, "1"), (tables, links)):
        (row,) = [line for line in table_markdown(table_of(place), folder).splitlines() if "| RNN" in line]
        assert row.endswith(f"| {told}, seed 2 diverged |")
