"""What `src/report.py` does: write the report, write the pages that are committed, keep results for the commit."""

from collections.abc import Sequence
from pathlib import Path

from hornn.blocks import Writers, pages_with_blocks, renew_page
from hornn.reporting.comma_separated import table_csv
from hornn.reporting.excerpts import claims_excerpt, rows_excerpt
from hornn.reporting.latex import table_latex
from hornn.reporting.markdown import table_markdown
from hornn.reporting.page import render_page
from hornn.reporting.run_pages import write_run_pages
from hornn.reporting.runs import find_runs, keep_results
from hornn.reporting.studies import read_studies
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.table_pages import PAGE, picture_markdown, write_table_pages
from hornn.reporting.tables import Table, build_tables
from hornn.reporting.unwritten import unwritten_sweeps
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
        write_run_pages(tables, out)
        page = render_page(tables, found.warnings.get("", ()), out, read_studies(results))
        write_atomically(out / "index.html", page)
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


def write_pages(results: Path, folder: Path, project: Path) -> str:
    """Renew what is generated for the commit from committed results alone; what to tell the user.

    These are the pages and pictures in `results`/tables, and the blocks of the pages of `project` (see `hornn.blocks`).
    Raises ValueError for a wrong sweep file, and with the page and the line for a wrong block.
    """
    sweeps = read_sweeps(folder)
    tables = build_tables(sweeps, find_runs(sweeps, results, committed_only=True))
    place = results / "tables"
    place.mkdir(parents=True, exist_ok=True)
    write_table_pages(tables, place)
    home = {
        table.sweep.name: place / table.sweep.name / PAGE if table.measured else table.sweep.path
        for table in tables
    }

    def writers(at: Path) -> Writers:
        return {
            "overview": lambda _: picture_markdown(tables, place, at),
            "rows": lambda words: rows_excerpt(words, tables, home, at),
            "claims": lambda words: claims_excerpt(words, tables, home, at),
        }

    pages = pages_with_blocks(project)
    changed = [str(page) for page in pages if renew_page(page, writers(page.parent))]
    measured = sum(bool(table.measured) for table in tables)
    return "\n".join([*changed, f"{place / PAGE}: {measured} of {len(tables)} tables have results"])


def keep_for_commit(results: Path, folder: Path) -> str:
    """Copy the results of finished runs of the sweep files in `folder` to where they can be committed."""
    warnings: dict[str, list[str]] = {}
    written = keep_results(read_sweeps(folder), results, warnings)
    said = [f"warning: {text}" for texts in warnings.values() for text in texts]
    return "\n".join([*said, *map(str, written), f"{len(written)} results kept in {results / 'tables'}"])
