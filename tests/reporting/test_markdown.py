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
