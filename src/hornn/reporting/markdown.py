"""A table as Markdown."""

import os
from pathlib import Path

from hornn.reporting.grid import table_grid
from hornn.reporting.notes import table_notes
from hornn.reporting.runs import Run
from hornn.reporting.tables import Table


def table_markdown(table: Table, folder: Path, claims: bool = True) -> str:
    """The table with its remarks; links to result files start at `folder`, where the text will lie.

    Without `claims` it does not say what became of the paper's claims.
    """
    grid, labels = table_grid(table), [metric.label for metric in table.sweep.metrics]
    lines = [
        f"### {table.sweep.title}",
        "",
        "; ".join(filter(None, [table.sweep.paper, *labels])),
        "",
        "| " + " | ".join(grid.header) + " |",
        "|"
        + "|".join("---" if name in ("model", "device", "runs") else "---:" for name in grid.header)
        + "|",
    ]
    for line, cells in zip(table.lines, grid.rows, strict=True):
        texts = [
            escape_markdown(cell.text) + (f" <sup>{cell.marks}</sup>" if cell.marks else "") for cell in cells
        ]
        texts[-1] = ", ".join(filter(None, [*(seed_link(run, folder) for run in line.runs), texts[-1]]))
        lines.append("| " + " | ".join(texts) + " |")
    remarks = [f"- <sup>{mark}</sup> {escape_markdown(text)}" for mark, text in grid.legend.items()]
    remarks += [
        f"- {escape_markdown(text)}"
        for text in (*(table.comparisons if claims else table.orders), *table_notes(table))
    ]
    return "\n".join([*lines, "", *remarks]) + "\n"


def seed_link(run: Run, folder: Path) -> str:
    return f"[seed {run.seed}]({relative_address(run.path, folder)})" if run.path else ""


def relative_address(path: Path, folder: Path) -> str:
    """The way from a folder to a file, as an address."""
    return Path(os.path.relpath(path, folder)).as_posix().replace(" ", "%20")


def escape_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
