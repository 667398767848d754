"""Whether the measured order of the rows that read the same data is the paper's."""

from collections.abc import Sequence
from itertools import combinations
from statistics import correlation
from typing import NamedTuple

from hornn.reporting.lines import Line, by_data, by_one_recipe, on_one_device
from hornn.reporting.sweeps import Metric

MIN_RANKS = 5  # of a correlation: of four rows or fewer, it is far from 0 in most orders that mean nothing


class Order(NamedTuple):
    """The rows with both numbers, in the table's order: names, labels, published numbers and measured ones.

    `data` is the corpus that all of them read, empty where the table compares rows of one corpus alone.
    """

    metric: Metric
    data: str
    rows: tuple[str, ...]
    labels: tuple[str, ...]
    published: tuple[float, ...]
    measured: tuple[float, ...]

    @property
    def heading(self) -> str:
        """`perplexity, test`; `nats, test, on music-nottingham` where the table has other data, too."""
        return f"{self.metric.label}, on {self.data}" if self.data else self.metric.label

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
        rho = spearman(theirs, ours) if len(theirs) >= MIN_RANKS else None
        words = f"{same} of the {len(pairs)} pairs of rows that the paper separates stand in the same order"
        return words + (f"; Spearman's rank correlation is {rho:.2f}." if rho is not None else ".")


def compare_orders(metric: Metric, lines: Sequence[Line]) -> list[Order]:
    """Both orders of the rows that have both numbers, for each data that they read; none for sizes.

    Numbers of different data are never compared: their order is that of the data. Rows whose published number used
    dynamic evaluation are left out. None also of fewer than three rows, and of rows that are not trained by one recipe,
    and by a time of rows on different devices: their order would say nothing.
    """
    if metric.lower_is_better is None:
        return []
    both = {
        line.row.name: (score.published.value, score.mean)
        for line in lines
        if (score := line.scores.get(metric.key))
        and not line.row.dynamic
        and score.published is not None
        and score.published.value is not None
        and score.mean is not None
    }
    groups = by_data(line for line in lines if line.row.name in both)
    orders = []
    for (corpus, _), compared in groups.items():
        if len(compared) < 3 or not by_one_recipe(compared) or not on_one_device(metric.key, compared):
            continue
        names = tuple(line.row.name for line in compared)
        published, measured = zip(*(both[name] for name in names), strict=True)
        labels = tuple(line.row.label for line in compared)
        data = corpus if len(groups) > 1 else ""
        orders.append(Order(metric, data, names, labels, published, measured))
    return orders


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The correlation of the ranks, equal values sharing their mean rank; None where one side is all equal."""
    a, b = ranks(one), ranks(other)
    return correlation(a, b) if len({*a}) > 1 < len({*b}) else None


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]
