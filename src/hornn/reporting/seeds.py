"""How far numbers differ from seed to seed, and the standard errors of rows and gains."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hornn.reporting.lines import TIMES, Line, by_data, departures_of
from hornn.reporting.numbers import is_count
from hornn.reporting.scores import REACHES, Score
from hornn.reporting.utterances import error_over_speakers
from hornn.reporting.variances import NONE, Prior, Variance, pooled, prior_of, student, total

MIN_DEGREES_OF_FREEDOM = 4  # of a pooled deviation: seeds beyond the first of their row, over all rows
ROUNDING = 1 / 12  # the variance of a whole number of steps: seeds that agree are rounded alike
DECISIVE = 3.0  # standard errors decide, where their size is known
UNSEEDED = ("gmm", "key_counts", "kn", "kn_cache")  # models without anything that a seed would draw


class Spread(NamedTuple):
    """The relative deviation over seeds: pooled over rows of a table, with its degrees of freedom.

    prior: what the rows say of each other's variance.
    """

    share: float
    freedom: float
    prior: Prior

    def of(self, score: Score) -> Variance:
        """The variance of one run of a row, relative to its mean."""
        own = self.prior.moderate(variance_of(score))
        return Variance(own.value, min(own.freedom, self.freedom))

    @property
    def decisive_alone(self) -> float:
        """How many standard errors decide where one of two rows has one seed."""
        return student(DECISIVE, min(self.prior.freedom(), self.freedom))


def spread_for(compared: Iterable[Line], metric: str, lines: Sequence[Line]) -> Spread | None:
    """The relative deviation over seeds that tells the errors of these rows of a table.

    Rows that read other data than these are left out, for another corpus may scatter otherwise; they count where the
    rows on the same data have too few degrees of freedom.
    """
    read = by_data(compared)
    alike = [line for data, group in by_data(lines).items() if data in read for line in group]
    return spread_over_seeds(metric, alike) or spread_over_seeds(metric, lines)


def spread_over_seeds(metric: str, lines: Iterable[Line]) -> Spread | None:
    """The relative deviation over seeds of rows; None with too few degrees of freedom, and if it is 0.

    Rows at the limit of their measurement are left out: there all seeds are alike. So are models in which no seed draws
    anything, and a row whose mean is 0: it has no relative deviation. Rows that depart from their recipe, such as short
    trials, count only where all measured rows do.
    """
    lines = [line for line in lines if not is_unseeded(line)]
    kept = [line for line in lines if not departures_of(line)] or lines
    scores = [each for line in kept if (each := line.scores.get(metric)) and not each.at_limit]
    parts = [part for each in scores if (part := variance_of(each)).freedom]
    whole = pooled(parts)
    if whole.freedom < MIN_DEGREES_OF_FREEDOM or not whole.value:
        return None
    return Spread(whole.root, whole.freedom, prior_of(tuple(parts)))


def variance_of(score: Score) -> Variance:
    """The relative variance of a row's seeds; it has no degree of freedom with one seed, or where the mean is 0."""
    freedom = len(score.values) - 1
    if freedom < 1 or not score.mean:
        return NONE
    return Variance(sum((value / score.mean - 1) ** 2 for value in score.values) / freedom, freedom)


def is_unseeded(line: Line) -> bool:
    """Whether no seed draws anything in its numbers: in no run of it; so in none of a row without runs."""
    return all(run.result.get("choices", {}).get("model") in UNSEEDED for run in line.measured)


class Errors(NamedTuple):
    """The squared standard errors of a number: over seeds, and of word errors over test speakers; None if not known."""

    of_seeds: Variance | None
    of_speakers: Variance | None = None

    @property
    def of_all(self) -> Variance:
        """The sum of the squared errors that are known: their sources are independent."""
        return total(part for part in self if part)

    @property
    def total(self) -> float | None:
        """The standard error; None with too few seeds: over speakers alone it would be too small."""
        return self.of_all.root if self.of_seeds else None

    @property
    def decisive(self) -> float:
        """How many standard errors decide: the less is known of their size, the more."""
        return student(DECISIVE, self.of_all.freedom)


def errors_of_mean(line: Line, metric: str, spread: Spread | None) -> Errors:
    """The errors of a row's mean, in its unit."""
    of_seeds = error_over_seeds(metric, spread, line)
    mean = line.scores[metric].mean or 0.0
    return Errors(of_seeds and of_seeds.times(mean**2), error_over_speakers(metric, line))


def errors_of_gain(one: Line, other: Line, metric: str, spread: Spread | None) -> Errors:
    """The errors of the difference of two rows' means, relative to the other's."""
    first, mean = (line.scores[metric].mean for line in (one, other))
    if not mean or first is None:
        return Errors(None)
    of_seeds = error_over_seeds(metric, spread, one, other)
    of_speakers = error_over_speakers(metric, one, other)
    ratio, inverse = first / mean, 1 / mean  # a product may be infinite, where a power would be an error
    return Errors(
        of_seeds and of_seeds.times(ratio * ratio), of_speakers and of_speakers.times(inverse * inverse)
    )


def error_over_seeds(metric: str, spread: Spread | None, *lines: Line) -> Variance | None:
    """The squared standard error of a row's mean, or of the ratio of two, relative to it; None if not known.

    A count, as of weights, has none.
    """
    if is_count(metric):
        return Variance(0.0, math.inf)
    parts = []
    for line in lines:
        if is_unseeded(line) and metric not in TIMES:
            continue
        if spread is None:
            return None
        score = line.scores[metric]
        parts.append(spread.of(score).times(1 / len(score.values)))
        if metric in REACHES and score.mean:
            parts.append(Variance(ROUNDING / score.mean**2, math.inf))
    # A variance that came out too small hides its own uncertainty from a weighted sum: the least known one counts.
    return Variance(total(parts).value, min((part.freedom for part in parts), default=math.inf))
