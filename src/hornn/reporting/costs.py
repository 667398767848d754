"""What each table costs, from its committed results: the block `<!-- costs -->` of a page (see `hornn.blocks`)."""

from collections.abc import Sequence
from pathlib import Path

from hornn.reporting.lines import training_seconds
from hornn.reporting.markdown import escape_markdown, markdown_table, relative_address
from hornn.reporting.tables import Table

HEADER = ("`sweeps=`", "table", "rows to run", "measured", "hours", "minutes a run", "memory, MiB")


def costs_excerpt(tables: Sequence[Table], home: dict[str, Path], folder: Path) -> str:
    """A line for each sweep, by name. `home`: the page of each sweep; links start at `folder`."""
    rows = [
        [
            f"`{table.sweep.name}`",
            f"[{escape_markdown(table.sweep.title)}]({relative_address(home[table.sweep.name], folder)})",
            str(table.runnable),
            str(table.measured),
            *cost_of(table),
        ]
        for table in sorted(tables, key=lambda table: table.sweep.name)
    ]
    return markdown_table(HEADER, rows, left=HEADER[:2])


def cost_of(table: Table) -> list[str]:
    """Hours of one seed of every row, the least and the most minutes of a run, the most memory; empty where unknown.

    Rows without a time, such as runs that shared a GPU, have no part in the hours, which then say of how many they are.
    """
    minutes = [
        [taken / 60 for run in line.measured if (taken := training_seconds(run.result))]
        for line in table.lines
    ]
    known = [taken for line in minutes for taken in line]
    if not known:
        return ["", "", ""]
    memory = max(run.result.get("peak_memory_mb") or 0 for line in table.lines for run in line.measured)
    timed = [line for line in minutes if line]
    of = f" ({len(timed)} of {table.measured} rows)" if len(timed) < table.measured else ""
    return [
        f"{sum(line[0] for line in timed) / 60:.1f}{of}",
        f"{min(known):.0f} to {max(known):.0f}" if max(known) >= 1 else "below 1",
        f"{memory:.0f}",
    ]
