"""A table as LaTeX."""

import re

from hornn.reporting.grid import table_grid
from hornn.reporting.latex import SPECIAL, escape_latex, number_latex, table_latex
from reporting.place import SWEEP, Place, table_of


def cells_of(text: str) -> list[list[str]]:
    """The cells of the tabular as a reader sees them; a cell that spans columns comes once."""
    rows = [
        line.removeprefix("{}").removesuffix(r" \\").split(" & ")
        for line in text.splitlines()
        if line.endswith(r"\\")
    ]
    return [[re.sub(r"\$\^\{\w+\}\$$", "", cell) for cell in row] for row in rows]


def seen(cell: str) -> str:
    for char, written in sorted(SPECIAL.items(), key=lambda pair: -len(pair[1])):
        cell = cell.replace(written, char)
    return cell.replace("$-$", "-")


def test_latex_escapes_and_has_equal_columns(filled: Place) -> None:
    filled.commit("rnn", 1, 120.0, dirty=True)
    text = table_latex(table_of(filled))
    columns = text.partition(r"\begin{tabular}{")[2].partition("}")[0]
    assert {len(row) for row in cells_of(text)} == {len(columns)}
    assert r"123\ddag{}" in text
    assert r"$-$3.0" in text
    assert not set("±†‡§<>") & set(text)


def test_latex_says_what_the_page_says(filled: Place) -> None:
    table = table_of(filled)
    header, *rows = cells_of(table_latex(table))
    grid = table_grid(table)
    assert header == [name for _, name in grid.heads]
    assert [[seen(cell) for cell in row] for row in rows] == [
        [cell.text for cell in row] for row in grid.rows
    ]


def test_several_metrics_have_a_heading_each(filled: Place) -> None:
    text = re.sub(r"\n      published: .*", "", SWEEP).replace('"perplexity, test"\n', "ppl\n", 1)
    metrics = "metric: [{key: test_ppl, label: ppl_%}, {key: valid_ppl, label: valid}]\n"
    filled.write_sweep("toy", re.sub(r"metric: test_ppl\n  metric_label: ppl\n", metrics, text))
    over, header, *_ = cells_of(table_latex(table_of(filled)))
    spans = [int(span) for span in re.findall(r"multicolumn\{(\d)\}", " ".join(over))]
    assert sum(spans) == len(header)
    assert r"{c}{ppl\_\%}" in " ".join(over)
    assert header.count("measured") == 2


def test_the_caption_names_the_paper_where_there_is_one(filled: Place) -> None:
    table = table_of(filled)
    assert f"({escape_latex(table.sweep.paper)}).}}" in table_latex(table)
    without = table._replace(sweep=table.sweep._replace(paper=""))
    assert rf"\caption{{{escape_latex(table.sweep.title)}.}}" in table_latex(without)


def test_every_special_character_is_written() -> None:
    assert escape_latex(r"a_b & 5 % #{~^\} $x$ <y> | ±") == (
        r"a\_b \& 5 \% \#\{\textasciitilde{}\textasciicircum{}\textbackslash{}\} \$x\$ "
        r"\textless{}y\textgreater{} \textbar{} $\pm$"
    )


def test_a_minus_within_a_text_of_a_table_stays() -> None:
    assert (number_latex("-3.0"), number_latex("1-2")) == ("$-$3.0", "1-2")
