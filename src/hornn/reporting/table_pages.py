"""The pages beside the results: `tables/README.md` and `tables/<sweep>/README.md`, with their pictures.

They hold what committed results fill. A sweep without results has no page: its line in the overview has its command.
"""

from collections.abc import Sequence
from pathlib import Path

from hornn.reporting.figures import draw_main_figure
from hornn.reporting.glance import NAME, draw_glance
from hornn.reporting.markdown import (
    capitalized,
    claims_markdown,
    escape_markdown,
    list_of,
    markdown_table,
    relative_address,
    table_markdown,
)
from hornn.reporting.memory import draw_memory, factor_notes
from hornn.reporting.overview import OVERVIEW_HEADER, OVERVIEW_NOTE, overview_cells
from hornn.reporting.panels import Panel
from hornn.reporting.ranks import draw_ranks
from hornn.reporting.row_styles import row_styles
from hornn.reporting.tables import Table
from hornn.writing import write_atomically

PAGE, OVERVIEW, FIGURE, RANKS = "README.md", "overview.svg", "figure.svg", "ranks-{}.svg"
MEMORY = "memory-{}.svg"
GREY = "#6e7781"  # ink that is read on white and on black: a picture does not know its page


def write_table_pages(tables: Sequence[Table], folder: Path) -> None:
    """Write all pages and pictures to `folder`; pages and pictures that nothing fills any more are removed."""
    shown = [table for table in tables if table.measured]
    for table in shown:
        write_table_page(table, folder / table.sweep.name)
    write_or_remove(folder / OVERVIEW, draw_glance(shown))
    write_atomically(folder / PAGE, overview_markdown(tables, folder))
    names = {table.sweep.name for table in shown}
    for page in folder.glob(f"*/{PAGE}"):
        if page.parent.name not in names:
            for name in (PAGE, FIGURE, RANKS.format("*"), MEMORY.format("*")):
                for path in page.parent.glob(name):
                    path.unlink()


def write_table_page(table: Table, folder: Path) -> None:
    """The page of one table: its figures, then what `table_markdown` says, then its command."""
    folder.mkdir(parents=True, exist_ok=True)
    figure = draw_main_figure(table)
    ranks = [draw_ranks(order, row_styles(table.lines)) for order in table.orders]
    write_or_remove(folder / FIGURE, figure.panels[0] if figure else None)
    parts = [f"[All tables](../{PAGE}) · [Sweep file]({relative_address(table.sweep.path, folder)})"]
    if figure:
        parts += [
            f"![{escape_markdown(table.sweep.title)}]({FIGURE})",
            escape_markdown(capitalized(figure.panels[0].caption)),
        ]
    for address, panel in zip(write_pictures(ranks, folder, RANKS), ranks, strict=True):
        parts += [f"![{escape_markdown(panel.caption)}]({address})", escape_markdown(panel.caption)]
    text = table_markdown(table, folder, before="\n\n".join(parts)) + memory_markdown(table, folder)
    write_atomically(folder / PAGE, text + command_markdown(table))


def command_markdown(table: Table) -> str:
    """The command that runs the table, and the words for one of its rows."""
    rows = [line.row.name for line in table.lines if line.row.run is not None]
    if not table.sweep.command or not rows:
        return ""
    one = f'"hydra.sweeper.only=[{rows[0]}]" "sweep.seeds=[1]"'
    return f"\n## Command\n\n```\n{table.sweep.command}\n```\n\nOne row and seed: the same command and `{one}`.\n"


def memory_markdown(table: Table, folder: Path) -> str:
    """How far the networks look back: the panels of each figure side by side, written to `folder`, and the factors."""
    plots = draw_memory(table, named=True)
    addresses = iter(write_pictures([panel for plot in plots for panel in plot.panels], folder, MEMORY))
    parts = []
    for plot in plots:
        captions = [escape_markdown(panel.caption) for panel in plot.panels]
        pictures = [f"![{caption.partition(':')[0]}]({next(addresses)})" for caption in captions]
        parts.append(markdown_table(pictures, [captions], left=pictures))
    notes = [*list_of(map(escape_markdown, factor_notes(table)))]
    return "\n" + "\n\n".join(["## Memory", *parts, *notes]) + "\n" if parts else ""


def write_pictures(panels: Sequence[Panel], folder: Path, name: str) -> list[str]:
    """Write the pictures of panels to `folder`, each called `name` with its number; return the names.

    Pictures of such names from before are removed.
    """
    for old in folder.glob(name.format("*")):
        old.unlink()
    addresses = [name.format(number) for number in range(1, len(panels) + 1)]
    for address, panel in zip(addresses, panels, strict=True):
        write_or_remove(folder / address, panel)
    return addresses


def write_or_remove(path: Path, panel: Panel | None) -> None:
    if panel:
        write_atomically(path, panel.svg.replace("<svg ", f'<svg color="{GREY}" ', 1))
    else:
        path.unlink(missing_ok=True)


def overview_markdown(tables: Sequence[Table], folder: Path) -> str:
    """The page of all tables: the picture, the table of tables, the claims, what is not run yet."""
    shown = [table for table in tables if table.measured]
    links = {
        table.sweep.name: f"{table.sweep.name}/{PAGE}"
        if table.measured
        else relative_address(table.sweep.path, folder)
        for table in tables
    }
    parts = ["# Published and measured"]
    parts.append(
        "Each folder here holds the result files of one table: a JSON file for each row and seed, with its config, "
        "commit, corpus checksum, machine and the figures of every epoch. `python src/report.py --write` writes this "
        "page and the folders' pages from them."
    )
    parts.append(picture_markdown(shown, folder, folder))
    if shown:
        rows = [
            [f"[{escape_markdown(title)}]({links[table.sweep.name]})", *cells]
            for table in shown
            for title, *cells in [overview_cells(table)]
        ]
        parts += ["## Tables", markdown_table(OVERVIEW_HEADER, rows, left=("table",)), OVERVIEW_NOTE]
    claims = [(table, verdict) for table in tables for verdict in table.verdicts]
    if claims:
        note = (
            "Gains are relative to the row that the claim calls worse. ±: one standard error, where a table has "
            "seeds enough."
        )
        parts += [*claims_markdown(claims, "## {}", links), note]
    waiting = [table for table in tables if not table.measured]
    if waiting:
        parts += ["## Not run yet", *list_of(waiting_line(table, folder) for table in waiting)]
    return "\n\n".join(parts) + "\n"


def waiting_line(table: Table, folder: Path) -> str:
    sweep = table.sweep
    run = f": `{sweep.command}`" if sweep.command and table.runnable else ""
    return f"[{escape_markdown(sweep.title)}]({relative_address(sweep.path, folder)}), {len(sweep.rows)} rows{run}"


def picture_markdown(tables: Sequence[Table], pictures: Path, folder: Path) -> str:
    """The picture of all tables, in `pictures`, with its caption; links start at `folder`."""
    panel = draw_glance(tables)
    if panel is None:
        return "No published number has a measured one beside it yet."
    address = relative_address(pictures / OVERVIEW, folder)
    page = relative_address(pictures / PAGE, folder)
    more = "" if pictures == folder else f" [All tables and claims]({page})."
    return f"![{NAME}]({address})\n\n{panel.caption}{more}"
