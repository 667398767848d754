"""How far numbers differ from seed to seed, and the standard errors of rows and gains."""

import math
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from hornn.reporting.lines import Line
from hornn.reporting.utterances import error_over_utterances

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


class Errors(NamedTuple):
    """The standard errors of a number: over seeds, and of word errors over the tested utterances; None if not known."""

    of_seeds: float | None
    of_utterances: float | None = None

    @property
    def known(self) -> float:
        """Of what is known: the sources are independent, so that their squares add up."""
        return math.hypot(self.of_seeds or 0.0, self.of_utterances or 0.0)

    @property
    def total(self) -> float | None:
        """None with too few seeds: the error over utterances alone would be too small."""
        return self.known if self.of_seeds else None


def errors_of_mean(line: Line, metric: str, share: float | None) -> Errors:
    """Of a row's mean, in its unit; `share`: the spread over seeds."""
    values = line.scores[metric].values
    of_seeds = share * fmean(values) / len(values) ** 0.5 if share and values else None
    return Errors(of_seeds, error_over_utterances(metric, line))


def errors_of_gain(one: Line, other: Line, metric: str, share: float | None) -> Errors:
    """Of the difference of two rows' means, relative to the other; `share`: the spread over seeds."""
    scores = [line.scores[metric] for line in (one, other)]
    mean = scores[1].mean
    if not mean:
        return Errors(None)
    ratio, counts = fmean(scores[0].values) / mean, [len(score.values) for score in scores]
    of_seeds = share * math.hypot(ratio / counts[0] ** 0.5, 1 / counts[1] ** 0.5) if share else None
    of_utterances = error_over_utterances(metric, one, other)
    return Errors(of_seeds, None if of_utterances is None else of_utterances / mean)
