"""How far numbers differ from seed to seed, and the standard errors of rows and gains."""

import math
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from hornn.reporting.lines import Line
from hornn.reporting.utterances import error_over_utterances

MIN_DEGREES_OF_FREEDOM = 4  # of a pooled deviation: seeds beyond the first of their row, over all rows
DECISIVE = 3.0  # standard errors decide, where their size is known


class Spread(NamedTuple):
    """A pooled relative standard deviation over seeds, and its degrees of freedom."""

    share: float
    freedom: int


def spread_over_seeds(metric: str, lines: Iterable[Line]) -> Spread | None:
    """The pooled relative standard deviation over seeds of all rows; None with too few degrees of freedom, and if 0.

    Rows at the limit of their measurement are left out: there all seeds are alike. So is a row whose mean is 0: it has
    no relative deviation.
    """
    scores = [each for line in lines if (each := line.scores.get(metric)) and not each.at_limit]
    several = [each for each in scores if len(each.values) > 1 and each.mean]
    freedom = sum(len(each.values) - 1 for each in several)
    squares = sum((value / fmean(each.values) - 1) ** 2 for each in several for value in each.values)
    if freedom < MIN_DEGREES_OF_FREEDOM or not squares:
        return None
    return Spread(math.sqrt(squares / freedom), freedom)


class Errors(NamedTuple):
    """The standard errors of a number: over seeds, and of word errors over the tested utterances; None if not known.

    `freedom`: the degrees of freedom of the error over seeds.
    """

    of_seeds: float | None
    of_utterances: float | None = None
    freedom: int = 0

    @property
    def known(self) -> float:
        """Of what is known: the sources are independent, so that their squares add up."""
        return math.hypot(self.of_seeds or 0.0, self.of_utterances or 0.0)

    @property
    def total(self) -> float | None:
        """None with too few seeds: the error over utterances alone would be too small."""
        return self.known if self.of_seeds else None

    @property
    def decisive(self) -> float:
        """How many standard errors decide: the fewer seeds tell their size, the more.

        The error over utterances counts as known, so that it adds degrees of freedom (Welch-Satterthwaite).
        """
        if not self.of_seeds:
            return DECISIVE
        return student(DECISIVE, self.freedom * (self.known / self.of_seeds) ** 4)


def student(x: float, freedom: float) -> float:
    """What a variable of Student's t exceeds as rarely as a normal one exceeds x; to 1 % for x = 3 and freedom >= 4.

    Source: Abramowitz & Stegun, Handbook of Mathematical Functions, equation 26.7.5.
    """
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / freedom**power for power, term in enumerate(terms, 1))


def errors_of_mean(line: Line, metric: str, spread: Spread | None) -> Errors:
    """Of a row's mean, in its unit."""
    values = line.scores[metric].values
    of_utterances = error_over_utterances(metric, line)
    if spread is None or not values:
        return Errors(None, of_utterances)
    return Errors(spread.share * fmean(values) / len(values) ** 0.5, of_utterances, spread.freedom)


def errors_of_gain(one: Line, other: Line, metric: str, spread: Spread | None) -> Errors:
    """Of the difference of two rows' means, relative to the other."""
    scores = [line.scores[metric] for line in (one, other)]
    mean = scores[1].mean
    if not mean:
        return Errors(None)
    ratio, counts = fmean(scores[0].values) / mean, [len(score.values) for score in scores]
    of_utterances = error_over_utterances(metric, one, other)
    of_utterances = None if of_utterances is None else of_utterances / mean
    if spread is None:
        return Errors(None, of_utterances)
    of_seeds = spread.share * math.hypot(ratio / counts[0] ** 0.5, 1 / counts[1] ** 0.5)
    return Errors(of_seeds, of_utterances, spread.freedom)
