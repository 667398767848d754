"""A table as LaTeX."""

from hornn.reporting.grid import DYNAMIC_SIGN, UNVERIFIED_SIGN, table_grid
from hornn.reporting.tables import Table


def table_latex(table: Table) -> str:
    """A tabular for booktabs in a table environment; the runs' links are left out."""
    grid = table_grid(table)
    keep = [index for index, name in enumerate(grid.header) if name not in ("device",)]
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape_latex(table.sweep.title)} ({escape_latex(table.sweep.paper)}).}}",
        rf"\begin{{tabular}}{{l{'r' * (len(keep) - 2)}l}}",
        r"\toprule",
        " & ".join(escape_latex(grid.header[index]) for index in keep) + r" \\",
        r"\midrule",
    ]
    for cells in grid.rows:
        texts = [
            escape_latex(cells[index].text) + (f"$^{{{cells[index].marks}}}$" if cells[index].marks else "")
            for index in keep
        ]
        lines.append(" & ".join(texts) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [
        rf"\par\footnotesize {escape_latex(mark)} {escape_latex(text)}" for mark, text in grid.legend.items()
    ]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    special = {char: f"\\{char}" for char in "&%$#_{}"} | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        UNVERIFIED_SIGN: r"\dag{}",
        DYNAMIC_SIGN: r"\ddag{}",
    }
    return "".join(special.get(char, char) for char in text)
