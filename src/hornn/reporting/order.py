"""Whether the measured order of the rows is the paper's."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from hornn.reporting.lines import Line, by_one_recipe
from hornn.reporting.sweeps import Metric, Sweep


class Order(NamedTuple):
    """The rows with both numbers, in the table's order: names, labels, published numbers and measured ones."""

    metric: Metric
    lower_is_better: bool
    rows: tuple[str, ...]
    labels: tuple[str, ...]
    published: tuple[float, ...]
    measured: tuple[float, ...]

    @property
    def summary(self) -> str:
        """How far the two orders agree, in words."""
        pairs = [
            (i, j)
            for i, j in combinations(range(len(self.labels)), 2)
            if self.published[i] != self.published[j]
        ]
        theirs, ours = self.published, self.measured
        same = sum((theirs[i] - theirs[j]) * (ours[i] - ours[j]) > 0 for i, j in pairs)
        correlation = spearman(theirs, ours)
        words = f"{same} of the {len(pairs)} pairs of rows that the paper separates stand in the same order"
        return words + (
            f"; Spearman's rank correlation is {correlation:.2f}." if correlation is not None else "."
        )


def compare_order(metric: Metric, sweep: Sweep, lines: Sequence[Line]) -> Order | None:
    """Both orders of the rows that have both numbers; None with fewer than three, and for sizes.

    Rows whose published number used dynamic evaluation are left out. None also where the rows are not trained by one
    recipe: their order would say nothing.
    """
    both = [
        (line, score.published.value, score.mean)
        for line in lines
        if (score := line.scores.get(metric.key))
        and not line.row.dynamic
        and score.published is not None
        and score.published.value is not None
        and score.mean is not None
    ]
    if len(both) < 3 or sweep.lower_is_better is None:
        return None
    compared, published, measured = zip(*both, strict=True)
    if not by_one_recipe(compared):
        return None
    names = tuple(line.row.name for line in compared)
    labels = tuple(line.row.label for line in compared)
    return Order(metric, sweep.lower_is_better, names, labels, published, measured)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The correlation of the ranks, equal values sharing their mean rank; None where one side is all equal."""
    a, b = ranks(one), ranks(other)
    middle = (len(a) + 1) / 2
    spread = math.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    return sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True)) / spread if spread else None


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]
