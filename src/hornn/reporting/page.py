"""The report: one HTML file that holds all tables and figures and needs nothing else."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from hornn.reporting.figures import draw_figures, draw_first
from hornn.reporting.formats import (
    OVERVIEW,
    OVERVIEW_NOTE,
    lay_out,
    link,
    notes,
    overview,
    renew,
    write_files,
)
from hornn.reporting.runs import find_runs, keep_results, unwritten_sweeps
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.tables import Table, build_tables
from hornn.result import write_atomically

GREY = "#6e7781"  # ink that is read on white and on black: a picture does not know its page
TEMPLATE = Path(__file__).with_name("page.html")


def write_report(results: Path, folder: Path, out: Path) -> str:
    """Write index.html and the files of each table to `out`; what to tell the user.

    Raises ValueError for a wrong sweep file in `folder`, OSError where `out` cannot be written.
    """
    sweeps = read_sweeps(folder)
    sweeps += unwritten_sweeps(sweeps, results)
    found = find_runs(sweeps, results)
    tables = build_tables(sweeps, found)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_files(tables, out)
        write_atomically(out / "index.html", render(tables, found.warnings.get("", ()), out))
    except OSError as error:
        raise OSError(f"cannot write to {out} ({error.strerror}): give --out FOLDER") from error
    measured, runnable = sum(table.measured for table in tables), sum(table.runnable for table in tables)
    warnings = [text for texts in found.warnings.values() for text in texts]
    summary = f"{out / 'index.html'}: {len(tables)} tables, {measured} of {runnable} rows measured"
    return "\n".join([*(f"warning: {text}" for text in warnings), summary])


def keep(results: Path, folder: Path) -> str:
    """Copy the results of finished runs of the sweep files in `folder` to where they can be committed."""
    warnings: dict[str, list[str]] = {}
    written = keep_results(read_sweeps(folder), results, warnings)
    said = [f"warning: {text}" for texts in warnings.values() for text in texts]
    return "\n".join([*said, *map(str, written), f"{len(written)} results kept in {results / 'tables'}"])


def renew_readme(results: Path, folder: Path, readme: Path) -> str:
    """Put the tables that committed results fill into the README, nothing that only this checkout has.

    Figures are files beside the results that they show.
    """
    sweeps = read_sweeps(folder)
    tables = build_tables(sweeps, find_runs(sweeps, results, committed_only=True))
    figures = {}
    for table in tables:
        if plot := draw_first(table):
            path = results / "tables" / table.sweep.name / "figure.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, plot.panels[0].svg.replace("<svg ", f'<svg color="{GREY}" ', 1))
            signs = ", ".join(f"{style.symbol} {label}" for label, style in plot.legend if label)
            caption = f"{signs}: {plot.panels[0].caption}" if signs else plot.panels[0].caption
            figures[table.sweep.name] = (
                f"\n![{table.sweep.title}]({link(path, readme.parent)})\n\n{caption}\n"
            )
    renew(readme, tables, figures)
    return f"{readme}: {sum(bool(table.measured) for table in tables)} tables"


def render(tables: Sequence[Table], warnings: Sequence[str], out: Path) -> str:
    """The page. Links to result files start at `out`."""
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        tables=tables,
        judged=[(table, verdict) for table in tables for verdict in table.verdicts],
        OVERVIEW=OVERVIEW,
        OVERVIEW_NOTE=OVERVIEW_NOTE,
        overview=overview,
        lay_out=lay_out,
        notes=notes,
        draw_figures=draw_figures,
        link=lambda path: link(path, out),
        warnings=warnings,
        written=datetime.now().strftime("%Y-%m-%d %H:%M"),
    )
