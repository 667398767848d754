"""A table: its lines, both orders of its rows, and what became of the paper's claims."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hornn.reporting.claims import Verdict, judge_claim
from hornn.reporting.lines import TIMES, Line, build_line
from hornn.reporting.order import Order, compare_orders
from hornn.reporting.runs import FoundRuns, commits
from hornn.reporting.scores import Score
from hornn.reporting.sweeps import Sweep


class Table(NamedTuple):
    """`orders` holds both orders of the rows, by each metric that allows it and for each data that they read."""

    sweep: Sweep
    lines: tuple[Line, ...]
    orders: tuple[Order, ...]
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...]

    @property
    def short_title(self) -> str:
        return self.sweep.title.partition(":")[0]

    @property
    def paper(self) -> str:
        """The authors and the year of its paper; of a table without one what stands there before a colon."""
        return re.split("[,:]", self.sweep.paper)[0] or "Sweeps of your own"

    @property
    def compared(self) -> list[Score]:
        """The scores that can be set beside a published number.

        Scores by dynamic evaluation are left out, and times, which are another machine's.
        """
        return [
            score
            for line in self.lines
            for key, score in line.scores.items()
            if score.relative_difference is not None and not line.row.dynamic and key not in TIMES
        ]

    @property
    def measured(self) -> int:
        return sum(bool(line.measured) for line in self.lines)

    @property
    def runnable(self) -> int:
        return sum(line.row.run is not None for line in self.lines)

    @property
    def seeds(self) -> tuple[int, int]:
        """Of the runs that the sweep file asks for, one for each seed of a row: how many are measured, and all."""
        asked = [
            (line, seed)
            for line in self.lines
            if line.row.run is not None
            for seed in line.row.seeds or self.sweep.seeds
        ]
        return sum(any(run.seed == seed for run in line.measured) for line, seed in asked), len(asked)

    @property
    def devices(self) -> list[str]:
        return sorted({device for line in self.lines for device in line.devices})

    @property
    def commits(self) -> list[str]:
        return commits([run for line in self.lines for run in line.measured])


def build_tables(sweeps: Sequence[Sweep], found: FoundRuns) -> list[Table]:
    """Tables with results first, the tables with most claims in front; then tables that can be run."""
    tables = [build_table(sweep, found) for sweep in sweeps]
    return sorted(tables, key=lambda table: (table.measured == 0, table.runnable == 0, -len(table.verdicts)))


def build_table(sweep: Sweep, found: FoundRuns) -> Table:
    runs = {
        row.name: sorted(found.runs.get(row.identity, []), key=lambda run: run.seed)
        if row.run is not None
        else []
        for row in sweep.rows
    }
    lines = tuple(
        build_line(row, sweep, runs[row.name], {name: runs[name] for name in row.start}) for row in sweep.rows
    )
    orders = tuple(order for metric in sweep.metrics for order in compare_orders(metric, lines))
    verdicts = tuple(judge_claim(claim, sweep, lines) for claim in sweep.claims)
    return Table(sweep, lines, orders, verdicts, tuple(found.warnings.get(sweep.name, ())))
