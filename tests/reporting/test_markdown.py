"""A table as Markdown."""

import re
from typing import Any

from hornn.reporting.excerpts import rows_excerpt
from hornn.reporting.markdown import table_markdown
from hornn.reporting.table_pages import write_table_pages
from reporting.place import CLAIMS, SWEEP, table_of


def test_markdown_is_a_whole_table_with_links(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    lines = table_markdown(table_of(place), place.folder / "docs").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {rows[0].count("|")}
    assert "[seed 1](../outputs/tables/toy/rnn-seed1.json), seed 2 not run" in rows[2]
    assert "Stack &lt;RNN>" in rows[-1]


def test_titles_and_labels_of_a_table_are_texts(place: Any) -> None:
    """A bar in them ends no cell, and nothing in them is markup."""
    hostile = "a|b *<i>*"
    text = SWEEP.replace("perplexity, test", hostile).replace("Toy: order", f"{hostile} order")
    text = text.replace('"Sum, order 2"', f'"{hostile}"')
    place.write_sweep("toy", text.replace("  figure:", CLAIMS + "  relative_to: sum-2\n  figure:"))
    place.write_sweep("other", text.replace("name: toy", "name: other"))
    for row in ("sum-2", "sum-3", "max-2"):
        place.commit(row, 1, 120.0)
    tables = place.results / "tables"
    table = table_of(place)
    write_table_pages([table, table_of(place, "other")], tables)
    excerpt = rows_excerpt(["toy", "sum-2", "max-2"], [table], {"toy": tables / "toy.md"}, tables)
    page, overview = ((tables / name / "README.md").read_text() for name in ("toy", ""))
    for shown in (excerpt, page, overview):
        assert "<i>" not in shown
        assert "\\|b \\*" in shown
        for block in re.findall(r"(?:^\|.*\n)+", shown, re.MULTILINE):
            assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1


def test_the_seeds_of_a_row_are_those_that_it_measured(place: Any) -> None:
    """What became of the others stands behind them. Of its runs each is a link, whatever became of it."""
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 0.0, status="diverged")
    tables = place.results / "tables" / "toy"
    links = "[seed 1](rnn-seed1.json), [seed 2](rnn-seed2.json)"
    for folder, told in ((None, "1"), (tables, links)):
        (row,) = [line for line in table_markdown(table_of(place), folder).splitlines() if "| RNN" in line]
        assert row.endswith(f"| {told}, seed 2 diverged |")
