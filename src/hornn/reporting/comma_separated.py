"""A table as CSV."""

import csv
import io
from typing import Any

from hornn.reporting.numbers import to_digits
from hornn.reporting.runs import commits
from hornn.reporting.tables import Table
from hornn.shown import shown


def table_csv(table: Table) -> str:
    """A line for each row and metric, its numbers to 7 significant digits, for other programs.

    The table as JSON also has the marks of each row and names the file of each result.
    """
    entries = [
        {
            "sweep": table.sweep.name,
            "row": line.row.name,
            "label": line.row.label,
            "metric": key,
            "published": score.published.value if score.published else None,
            "verified": score.published.verified if score.published else None,
            "source": score.published.source if score.published else None,
            "dynamic_evaluation": line.row.dynamic,
            "mean": score.mean,
            "at_limit": score.at_limit,
            "deviation": score.deviation,
            "seeds": len(score.values),
            "best_by_validation": score.best,
            "difference": score.difference,
            "num_parameters": line.parameters,
            "seconds_per_epoch": line.seconds,
            "device": "; ".join(line.devices),
            "status": line.status,
            "commits": " ".join(commits(line.measured)),
        }
        for line in table.lines
        for key, score in line.scores.items()
    ]
    out = io.StringIO()
    if entries:
        writer = csv.DictWriter(out, entries[0], lineterminator="\n")
        writer.writeheader()
        for entry in entries:
            writer.writerow({key: as_cell(value) for key, value in entry.items()})
    return out.getvalue()


def as_cell(value: Any) -> Any:
    """A number to 7 digits; a text as one line that no spreadsheet may take for a formula."""
    if isinstance(value, str):
        line = shown(value).strip()
        return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
    return to_digits(value) if isinstance(value, float) else value
