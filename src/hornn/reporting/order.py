"""Whether our order of the rows is the paper's."""

import math
from collections.abc import Sequence
from itertools import combinations

from hornn.reporting.lines import Line, by_one_recipe
from hornn.reporting.sweeps import Metric, Sweep


def compare_order(metric: Metric, sweep: Sweep, lines: Sequence[Line]) -> str:
    """Whether our order of the rows is the paper's, in words; empty with fewer than two rows to compare.

    Rows whose published number used dynamic evaluation are left out: ours does without.
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
    if len(both) < 2:
        return ""
    compared, theirs, ours = zip(*both, strict=True)
    if not by_one_recipe(compared):
        return f"{len(both)} rows have both numbers ({metric.label}), but not all of ours are by one recipe."
    labels = [line.row.label for line in compared]
    pairs = [(i, j) for i, j in combinations(range(len(both)), 2) if theirs[i] != theirs[j]]
    same = sum((theirs[i] - theirs[j]) * (ours[i] - ours[j]) > 0 for i, j in pairs)
    words = [f"{len(both)} rows have both numbers ({metric.label})."]
    if not pairs:
        words.append("The paper does not separate them.")
    elif len(pairs) == 1:
        words.append(
            f"The order of models is {'' if same else 'not '}the paper's in the one pair that it separates."
        )
    elif same == len(pairs):
        words.append(f"The order of models is the paper's in all {len(pairs)} pairs that it separates.")
    else:
        words.append(
            f"The order of models is not the paper's: of the {len(pairs)} pairs that it separates, {same} stand in"
            " the same order here."
        )
    correlation = spearman(theirs, ours) if len(both) > 2 else None
    if correlation is not None:
        words.append(f"Spearman's rank correlation is {correlation:.2f}.")
    if sweep.lower_is_better is not None:
        for who, values in (("The paper", theirs), ("Ours", ours)):
            ranked = sorted(zip(values, labels, strict=True), reverse=not sweep.lower_is_better)
            words.append(f"{who}, best first: {'; '.join(label for _, label in ranked)}.")
    return " ".join(words)


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
