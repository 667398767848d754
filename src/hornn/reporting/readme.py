"""The results in a Markdown file such as README.md: the list of tables, all claims, the tables with their figures."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hornn.reporting.figures import draw_main_figure
from hornn.reporting.markdown import escape_markdown, relative_address, table_markdown
from hornn.reporting.overview import OVERVIEW_HEADER, OVERVIEW_NOTE, overview_cells
from hornn.reporting.tables import Table
from hornn.result import write_atomically, write_between

GREY = "#6e7781"  # ink that is read on white and on black: a picture does not know its page


def renew_results(path: Path, tables: Iterable[Table], figures: Mapping[str, str]) -> None:
    """Replace the measured tables between the marks in a Markdown file; before them their list and all claims.

    `figures`: what to put below the table of a sweep, by its name. ValueError where the marks are missing.
    """
    shown = [table for table in tables if table.measured]
    bodies = [
        table_markdown(table, path.parent, claims=False) + figures.get(table.sweep.name, "")
        for table in shown
    ]
    parts = filter(None, [contents_markdown(shown), claims_markdown(shown), *bodies])
    text = "\n".join(parts) if shown else "No runs yet."
    write_between(path, "results", text.rstrip("\n"))


def write_figures(tables: Iterable[Table], results: Path, folder: Path) -> dict[str, str]:
    """Draw the main figure of each table into a file beside its results; name of a sweep -> the Markdown of its figure.

    Links start at `folder`.
    """
    figures = {}
    for table in tables:
        if plot := draw_main_figure(table):
            path = results / "tables" / table.sweep.name / "figure.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, plot.panels[0].svg.replace("<svg ", f'<svg color="{GREY}" ', 1))
            signs = ", ".join(f"{style.symbol} {label}" for label, style in plot.legend if label)
            caption = f"{signs}: {plot.panels[0].caption}" if signs else plot.panels[0].caption
            figures[table.sweep.name] = (
                f"\n![{table.sweep.title}]({relative_address(path, folder)})\n\n{caption}\n"
            )
    return figures


def contents_markdown(tables: Iterable[Table]) -> str:
    """All tables as a table, each with the way to its heading."""
    lines = ["| " + " | ".join(OVERVIEW_HEADER) + " |", "|---|" + "---:|" * (len(OVERVIEW_HEADER) - 1)]
    for table in tables:
        title, *cells = map(escape_markdown, overview_cells(table))
        lines.append(f"| [{title}](#{heading_anchor(table.sweep.title)}) | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", OVERVIEW_NOTE]) + "\n"


def heading_anchor(title: str) -> str:
    """What a Markdown heading is called where pages link to it: small letters, digits and hyphens."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def claims_markdown(tables: Iterable[Table]) -> str:
    """What became of the papers' claims, as a table; empty before the first can be judged."""
    judged = [
        (verdict.says, table.short_title, verdict.published, verdict.ours, verdict.outcome)
        for table in tables
        for verdict in table.verdicts
    ]
    if not judged:
        return ""
    lines = ["| claim | table | published | ours | |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(map(escape_markdown, cells)) + " |" for cells in judged]
    return "\n".join(["### What the papers claim of their models, by our numbers", "", *lines]) + "\n"
