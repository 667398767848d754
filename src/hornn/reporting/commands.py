"""What `src/report.py` does: write the report, write the pages that are committed, keep results for the commit."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hornn.blocks import Writers, renew_pages
from hornn.reporting.comma_separated import table_csv
from hornn.reporting.costs import costs_excerpt
from hornn.reporting.excerpts import claims_excerpt, rows_excerpt
from hornn.reporting.figures import draw_figures
from hornn.reporting.json_table import table_json
from hornn.reporting.latex import table_latex
from hornn.reporting.listening import copy_recordings
from hornn.reporting.markdown import table_markdown
from hornn.reporting.memory import draw_memory
from hornn.reporting.page import render_page
from hornn.reporting.panels import Plot
from hornn.reporting.runs import FoundRuns, find_runs, keep_results, warn
from hornn.reporting.server import Written, serve
from hornn.reporting.studies import SUMMARY, read_studies
from hornn.reporting.sweeps import find_sweeps, read_sweeps
from hornn.reporting.table_pages import PAGE, picture_markdown, write_table_pages
from hornn.reporting.tables import Table, build_tables
from hornn.reporting.unwritten import misnamed_records, unwritten_sweeps
from hornn.run.epochs import METRICS
from hornn.shown import shown
from hornn.writing import write_atomically

Draw = Callable[[Table], list[Plot]]
PAGE_OF_REPORT = "index.html"
SAMPLES = "tables/*/sample.png"
# Below the folder of results: what a report is made from.
SOURCES = (
    "sweeps/*.json",
    "tables/*/*.json",
    SAMPLES,
    "tables/recordings/*/*",
    "studies/*/study.json",
    f"*/*/*/seed=*/{METRICS}",
    "*/*/*/seed=*/result.json",
)


def read_sample(picture: Path) -> tuple[bytes, bytes]:
    """What a network of a table wrote: its picture, and the music as a MIDI file, empty where there is none."""
    music = picture.with_suffix(".mid")
    return picture.read_bytes(), music.read_bytes() if music.is_file() else b""


def write_report(
    results: Path,
    folder: Path,
    out: Path,
    own: Path | None = None,
    draw: Draw = draw_figures,
    memory: Draw = draw_memory,
) -> Written:
    """Write index.html and the files of each table to `out`; a table whose sweep file is wrong is left out, aloud.

    folder, own: as in `find_sweeps`. Raises OSError where `out` cannot be written.
    """
    is_there = results.is_dir()  # `out` may lie in it
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot write to {out} ({error.strerror}): give --out FOLDER") from error
    tables, found, refused = find_tables(results, folder, own)
    for reason in refused.values():
        warn(found.warnings, "", f"left out: {reason}")
    if not is_there:
        warn(
            found.warnings,
            "",
            f"there is no folder {results}: give --results FOLDER, the one that holds the runs",
        )
    studies = read_studies(results)
    try:
        written = write_table_files(tables, out)
        samples = {path.parent.name: read_sample(path) for path in results.glob(SAMPLES)}
        recordings, copied = copy_recordings(results, tables, out)
        warnings = found.warnings.get("", ())
        page = render_page(tables, warnings, out, studies, draw, memory, samples, recordings)
        write_atomically(out / PAGE_OF_REPORT, page)
    except OSError as error:
        raise OSError(f"cannot write to {out} ({error.strerror}): give --out FOLDER") from error
    measured, runnable = sum(table.measured for table in tables), sum(table.runnable for table in tables)
    warnings = [text for texts in found.warnings.values() for text in texts]
    runs = [run for runs in found.runs.values() for run in runs]
    warnings += sorted({f"{run.path}: {run.problem}" for run in runs if run.state == "damaged"})
    summary = f"{out / PAGE_OF_REPORT}: {len(tables)} tables, {measured} of {runnable} rows measured"
    files = [
        *written,
        *copied,
        *(run.path for run in runs if run.path),
        *(study.folder / SUMMARY for study in studies),
    ]
    return Written(
        "\n".join([*(f"warning: {shown(text)}" for text in warnings), summary]),
        {below_server(path, out): path for path in files},
        any(run.state == "running" for run in runs),
    )


def find_tables(
    results: Path, folder: Path, own: Path | None
) -> tuple[list[Table], FoundRuns, Mapping[str, str]]:
    """All tables, those without a sweep file too, their runs, and why others are left out, by sweep file.

    folder, own: as in `find_sweeps`.
    """
    sweeps, refused = find_sweeps(folder, own)
    refused = {**refused, **misnamed_records(results)}
    sweeps += unwritten_sweeps(sweeps, results, refused)
    found = find_runs(sweeps, results, refused=refused)
    return build_tables(sweeps, found), found, refused


def serve_report(
    results: Path, folder: Path, out: Path, port: int, say: Callable[[str], None], own: Path | None
) -> None:
    """Write the report, serve it on this machine, and keep it as the results are, until Ctrl-C."""
    draw, memory = remembering(draw_figures), remembering(draw_memory)

    def look() -> object:
        """Which files there are that the report is made from, how long and how old."""
        files = [*folder.glob("*.yaml"), *(own.glob("sweeps/*.yaml") if own else ())]
        found = [*files, *(path for pattern in SOURCES for path in results.glob(pattern))]
        return {path: (about.st_size, about.st_mtime_ns) for path in found if (about := stat_of(path))}

    serve(
        lambda: write_report(results, folder, out, own, draw, memory), look, out / PAGE_OF_REPORT, port, say
    )


def below_server(path: Path, out: Path) -> str:
    """The address at which a browser asks for a file that a page in `out`, the server's root, links to."""
    words = Path(os.path.relpath(path, out)).parts
    return "/".join(word for word in words if word != "..")


def stat_of(path: Path) -> os.stat_result | None:
    """None for a file that has just gone."""
    try:
        return path.stat()
    except OSError:
        return None


def remembering(draw: Draw) -> Draw:
    """A `draw` that draws a table's figures again only where the table has changed."""
    known: dict[str, tuple[Table, list[Plot]]] = {}

    def draw_again(table: Table) -> list[Plot]:
        name = table.sweep.name
        if name not in known or known[name][0] != table:
            known[name] = table, draw(table)
        return known[name][1]

    return draw_again


def write_table_files(tables: Sequence[Table], folder: Path) -> list[Path]:
    """<name>.md, .csv, .tex and .json of each table; the files written."""
    written = []
    for table in tables:
        for suffix, text in (
            ("md", table_markdown(table)),
            ("csv", table_csv(table)),
            ("tex", table_latex(table)),
            ("json", table_json(table)),
        ):
            written.append(folder / f"{table.sweep.name}.{suffix}")
            write_atomically(written[-1], text)
    return written


def write_pages(results: Path, folder: Path, project: Path, own: Path | None = None) -> str:
    """Renew what is generated for the commit from committed results alone; what to tell the user.

    These are the pages and pictures in `results`/tables, and the blocks of the pages of `project` (see `hornn.blocks`).
    Raises ValueError for a wrong sweep file, for results of a table without one, which the pages would lose, and with
    the page and the line for a wrong block.
    """
    sweeps = read_sweeps(folder, own)
    found = find_runs(sweeps, results, committed_only=True)
    if lost := found.warnings.get(""):
        raise ValueError("; ".join(lost))
    tables = build_tables(sweeps, found)
    place = results / "tables"
    home = {
        table.sweep.name: place / table.sweep.name / PAGE if table.measured else table.sweep.path
        for table in tables
    }

    def writers(at: Path) -> Writers:
        return {
            "overview": lambda _: picture_markdown(tables, place, at),
            "rows": lambda words: rows_excerpt(words, tables, home, at),
            "claims": lambda words: claims_excerpt(words, tables, home, at),
            "costs": lambda _: costs_excerpt(tables, home, at),
        }

    changed = renew_pages(project, writers)
    place.mkdir(parents=True, exist_ok=True)
    write_table_pages(tables, place)
    measured = sum(bool(table.measured) for table in tables)
    return "\n".join([*map(str, changed), f"{place / PAGE}: {measured} of {len(tables)} tables have results"])


def keep_for_commit(results: Path, folder: Path, own: Path | None = None) -> str:
    """Copy the results of finished runs of the sweep files in `folder` and `own` to where they can be committed.

    Raises ValueError for sweep files that are wrong once the results of the others are kept.
    """
    warnings: dict[str, list[str]] = {}
    sweeps, refused = find_sweeps(folder, own)
    written = keep_results(sweeps, results, warnings)
    kept = f"{len(written)} results kept in {results / 'tables'}"
    if refused:
        raise ValueError(f"{kept}, none of {', '.join(refused)}: {'; '.join(refused.values())}")
    said = [f"warning: {text}" for texts in warnings.values() for text in texts]
    return "\n".join([*said, *map(str, written), kept])
