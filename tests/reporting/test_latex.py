"""A table as LaTeX."""

from typing import Any

from hornn.reporting.latex import table_latex
from reporting.place import table_of


def test_latex_escapes_and_has_equal_columns(place: Any) -> None:
    place.commit("rnn", 1, 120.0, dirty=True)
    text = table_latex(table_of(place))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    columns = text.partition(r"\begin{tabular}{")[2].partition("}")[0]
    assert {row.count(" & ") + 1 for row in rows} == {len(columns)}
    assert r"123\ddag{}" in text
    assert "±" not in text
