"""How far numbers differ from seed to seed, and how many standard errors a difference of means is."""

import math
from collections.abc import Iterable
from statistics import fmean

from hornn.reporting.lines import Line
from hornn.reporting.scores import Score

MIN_DEGREES_OF_FREEDOM = (
    4  # how many seeds beyond the first of their row a spread over seeds is taken from, at least
)


def spread_over_seeds(metric: str, lines: Iterable[Line]) -> float | None:
    """The deviation over seeds relative to the mean, of all rows with several together; None with too few seeds."""
    several = [each for line in lines if (each := line.scores.get(metric)) and len(each.values) > 1]
    freedom = sum(len(each.values) - 1 for each in several)
    squares = sum((value / fmean(each.values) - 1) ** 2 for each in several for value in each.values)
    return math.sqrt(squares / freedom) if freedom >= MIN_DEGREES_OF_FREEDOM else None


def standard_errors(one: Score, other: Score, margin: float, share: float | None) -> float | None:
    """How many standard errors a margin between two means is, relative to the other; `share`: the spread over seeds."""
    if not share:
        return None
    ratio = fmean(one.values) / fmean(other.values)
    return abs(margin) / share / math.hypot(ratio / len(one.values) ** 0.5, 1 / len(other.values) ** 0.5)
