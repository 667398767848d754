"""How far numbers differ from seed to seed, and the standard errors that follow."""

import math
from collections.abc import Iterable
from statistics import fmean

from hornn.reporting.lines import Line
from hornn.reporting.scores import Score

MIN_DEGREES_OF_FREEDOM = 4  # of a pooled deviation: seeds beyond the first of their row, over all rows


def spread_over_seeds(metric: str, lines: Iterable[Line]) -> float | None:
    """The pooled relative standard deviation over seeds of all rows; None with too few degrees of freedom.

    Rows at the limit of their measurement are left out: there all seeds are alike. So is a row whose mean is 0: it has
    no relative deviation.
    """
    scores = [each for line in lines if (each := line.scores.get(metric)) and not each.at_limit]
    several = [each for each in scores if len(each.values) > 1 and each.mean]
    freedom = sum(len(each.values) - 1 for each in several)
    squares = sum((value / fmean(each.values) - 1) ** 2 for each in several for value in each.values)
    return math.sqrt(squares / freedom) if freedom >= MIN_DEGREES_OF_FREEDOM else None


def error_of_mean(score: Score, share: float | None) -> float | None:
    """The standard error of a row's mean; `share`: the spread over seeds. None where that is not known."""
    return share * fmean(score.values) / len(score.values) ** 0.5 if share and score.values else None


def error_of_gain(one: Score, other: Score, share: float | None) -> float | None:
    """The standard error of the difference of two means, relative to the other; `share`: the spread over seeds.

    None where the spread is not known, or the other mean is 0.
    """
    if not share or not other.mean:
        return None
    ratio = fmean(one.values) / fmean(other.values)
    return share * math.hypot(ratio / len(one.values) ** 0.5, 1 / len(other.values) ** 0.5)
