"""A table as LaTeX."""

import re
from collections.abc import Iterable

from hornn.reporting.grid import table_grid
from hornn.reporting.numbers import AT_LIMIT_SIGN, DYNAMIC_SIGN, OTHER_CORPUS_SIGN, UNVERIFIED_SIGN
from hornn.reporting.tables import Table
from hornn.shown import shown

SPECIAL = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    AT_LIMIT_SIGN: r"$\geq$",
    UNVERIFIED_SIGN: r"\dag{}",
    DYNAMIC_SIGN: r"\ddag{}",
    OTHER_CORPUS_SIGN: r"\S{}",
}


def table_latex(table: Table) -> str:
    """A tabular for booktabs in a table environment, without devices, the runs' links, and columns without entry."""
    grid = table_grid(table)
    grid = grid.select(
        [
            index
            for index, (_, name) in enumerate(grid.heads)
            if name != "device" and (name != "runs" or any(cells[index].text for cells in grid.rows))
        ]
    )
    source = f" ({escape_latex(table.sweep.paper)})" if table.sweep.paper else ""
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.sweep.title)}{source}.}}",
        rf"\begin{{tabular}}{{{''.join('l' if name in ('model', 'runs') else 'r' for _, name in grid.heads)}}}",
        r"\toprule",
    ]
    if any(metric for metric, _ in grid.heads):
        over = [
            rf"\multicolumn{{{columns}}}{{c}}{{{escape_latex(metric)}}}" for metric, columns in grid.groups
        ]
        lines.append(" & ".join(over) + r" \\")
    lines += [row_latex(escape_latex(name) for _, name in grid.heads), r"\midrule"]
    for cells in grid.rows:
        texts = [number_latex(cell.text) + (f"$^{{{cell.marks}}}$" if cell.marks else "") for cell in cells]
        lines.append(row_latex(texts))
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [
        rf"\par\footnotesize {f'$^{{{mark}}}$' if mark.isalpha() else escape_latex(mark)} {escape_latex(text)}"
        for mark, text in grid.legend.items()
    ]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def row_latex(texts: Iterable[str]) -> str:
    """A line of the tabular. What begins it is no option of the command before, as `[` or `*` would be."""
    return "{}" + " & ".join(texts) + r" \\"


def number_latex(text: str) -> str:
    """The text of a cell, with a minus that is one."""
    return re.sub(r"^-(?=\d)", "$-$", escape_latex(text))


def escape_latex(text: str) -> str:
    return "".join(SPECIAL.get(char, char) for char in shown(text))
