"""A table as JSON."""

import json
import os
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hornn.reporting.lines import Line, tells
from hornn.reporting.numbers import to_digits
from hornn.reporting.running import kept_name
from hornn.reporting.runs import commits
from hornn.reporting.scores import metric_value
from hornn.reporting.tables import Table
from hornn.result import finite


def table_json(table: Table) -> str:
    """All that the page says of a table: its rows with every seed's number, its claims, to 7 significant digits.

    A row, a score or a claim lacks the keys of what there is nothing to say of: a score has `seeds` where its numbers
    are of some of the row's seeds alone. The result of a seed is the file `ROW-seedN.json` in `folder`. Only a row
    whose results lie elsewhere, as another table's or those not kept yet, has `results`: their paths from `folder`.
    """
    sweep = table.sweep
    folders = [run.path.parent.as_posix() for line in table.lines for run in line.measured if run.path]
    folder = statistics.mode(folders) if folders else ""  # where most results lie
    content = {
        "sweep": sweep.name,
        "title": sweep.title,
        "paper": sweep.paper,
        "command": sweep.command,
        "lower_is_better": sweep.metrics[0].lower_is_better,  # of the first; each metric has its own, too
        "metrics": [metric._asdict() for metric in sweep.metrics],
        "folder": folder,
        "rows": [
            without_nothing(
                {
                    "row": line.row.name,
                    "label": line.row.label,
                    "run": line.row.run,
                    "dynamic_evaluation": line.row.dynamic or None,
                    "status": line.status,
                    "marks": line.marks,
                    "num_parameters": line.parameters,
                    "seconds_per_epoch": line.seconds,
                    "devices": line.devices,
                    "commits": commits(line.measured),
                    "seeds": [run.seed for run in line.measured],
                    "results": names_of(line, folder),
                    "scores": {
                        key: without_nothing(
                            {
                                "published": score.published and without_nothing(score.published._asdict()),
                                "measured": score.values,
                                "seeds": seeds_of(line, key),
                                "mean": score.mean,
                                "at_limit": score.at_limit or None,
                                "deviation": score.deviation,
                                "best_by_validation": score.best,
                                "difference": score.difference,
                            }
                        )
                        for key, score in line.scores.items()
                    },
                }
            )
            for line in table.lines
        ],
        "claims": [
            without_nothing(verdict._asdict() | {"metric": verdict.metric.key}) for verdict in table.verdicts
        ],
    }
    plain = json.loads(
        json.dumps(finite(content), allow_nan=False), parse_float=lambda text: to_digits(float(text))
    )
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")) + "\n"


def names_of(line: Line, folder: str) -> list[str] | None:
    """The files of a row's results, seen from the folder; None where each is named by its row and seed."""
    names = [Path(os.path.relpath(run.path, folder)).as_posix() for run in line.measured if run.path]
    by_rule = [kept_name(line.row.name, run.seed) for run in line.measured]
    return None if names == by_rule else names


def seeds_of(line: Line, key: str) -> list[int] | None:
    """The seeds whose results hold this number; None where all of the row's do, or it is of the runs together."""
    seeds = [
        run.seed
        for run in line.measured
        if metric_value(run.result, key) is not None and tells(run.result, key)
    ]
    return seeds if 0 < len(seeds) < len(line.measured) else None


def without_nothing(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value not in (None, "", (), [], {})}
