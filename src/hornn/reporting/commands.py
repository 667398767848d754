"""What `src/report.py` does: write the report, renew the results in the README, keep results for the commit."""

from collections.abc import Sequence
from pathlib import Path

from hornn.reporting.comma_separated import table_csv
from hornn.reporting.latex import table_latex
from hornn.reporting.markdown import table_markdown
from hornn.reporting.page import render_page
from hornn.reporting.readme import renew_results, write_figures
from hornn.reporting.runs import find_runs, keep_results, unwritten_sweeps
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.tables import Table, build_tables
from hornn.result import write_atomically


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
        write_table_files(tables, out)
        write_atomically(out / "index.html", render_page(tables, found.warnings.get("", ()), out))
    except OSError as error:
        raise OSError(f"cannot write to {out} ({error.strerror}): give --out FOLDER") from error
    measured, runnable = sum(table.measured for table in tables), sum(table.runnable for table in tables)
    warnings = [text for texts in found.warnings.values() for text in texts]
    damaged = [run for runs in found.runs.values() for run in runs if run.state == "damaged"]
    warnings += sorted({f"{run.path}: {run.problem}" for run in damaged})
    summary = f"{out / 'index.html'}: {len(tables)} tables, {measured} of {runnable} rows measured"
    return "\n".join([*(f"warning: {text}" for text in warnings), summary])


def write_table_files(tables: Sequence[Table], folder: Path) -> None:
    """<name>.md, .csv and .tex of each table."""
    for table in tables:
        for suffix, text in (
            ("md", table_markdown(table, folder)),
            ("csv", table_csv(table)),
            ("tex", table_latex(table)),
        ):
            (folder / f"{table.sweep.name}.{suffix}").write_text(text, encoding="utf-8")


def renew_readme(results: Path, folder: Path, readme: Path) -> str:
    """Put the tables that committed results fill into the README, nothing that only this checkout has.

    Figures are files beside the results that they show.
    """
    sweeps = read_sweeps(folder)
    tables = build_tables(sweeps, find_runs(sweeps, results, committed_only=True))
    figures = write_figures(tables, results, readme.parent)
    renew_results(readme, tables, figures)
    return f"{readme}: {sum(bool(table.measured) for table in tables)} tables"


def keep_for_commit(results: Path, folder: Path) -> str:
    """Copy the results of finished runs of the sweep files in `folder` to where they can be committed."""
    warnings: dict[str, list[str]] = {}
    written = keep_results(read_sweeps(folder), results, warnings)
    said = [f"warning: {text}" for texts in warnings.values() for text in texts]
    return "\n".join([*said, *map(str, written), f"{len(written)} results kept in {results / 'tables'}"])
