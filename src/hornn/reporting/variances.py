"""Variances that samples tell: how far each counts beside the others, and what they decide."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist, median
from typing import NamedTuple

FREEDOMS = tuple(2.0**power for power in range(9))  # of a prior: 1 tells little, 256 make all rows alike


class Variance(NamedTuple):
    """A variance, and the degrees of freedom that tell it."""

    value: float
    freedom: float = math.inf

    @property
    def root(self) -> float:
        return math.sqrt(self.value)

    def times(self, factor: float) -> "Variance":
        return Variance(factor * self.value, self.freedom)


def total(parts: Iterable[Variance]) -> Variance:
    """The variance of a sum of independent parts; its degrees of freedom are by Welch and Satterthwaite."""
    parts = [part for part in parts if part.value]
    value = sum(part.value for part in parts)
    uncertain = sum((part.value / value) ** 2 / part.freedom for part in parts)
    return Variance(value, 1 / uncertain if uncertain else math.inf)


def pooled(parts: Sequence[Variance]) -> Variance:
    """The variance of samples whose variances are alike; without a degree of freedom it is 0."""
    freedom = sum(part.freedom for part in parts)
    return Variance(sum(part.freedom * part.value for part in parts) / freedom if freedom else 0.0, freedom)


def prior_of(parts: Sequence[Variance]) -> Variance:
    """The prior that explains how far the variances of the rows differ: by chance, or beyond chance.

    It counts as so many degrees of freedom of each row: pooled with it, a row's own is drawn towards the others'.
    Each of FREEDOMS, with the value that is likeliest with it, counts by its likelihood: the value is their mean, the
    degrees of freedom their harmonic mean. So one seed more never switches from one rule to another.
    """
    parts = with_least(parts)
    priors = [Variance(likeliest(parts, freedom), freedom) for freedom in FREEDOMS]
    logs = [log_likelihood(parts, prior) for prior in priors]
    weights = [math.exp(log - max(logs)) for log in logs]
    pairs = list(zip(weights, priors, strict=True))
    value = sum(weight * prior.value for weight, prior in pairs) / sum(weights)
    return Variance(value, sum(weights) / sum(weight / prior.freedom for weight, prior in pairs))


def log_likelihood(parts: Iterable[Variance], prior: Variance) -> float:
    """Of these variances, up to a constant: value / prior.value follows F with both degrees of freedom.

    Source: Smyth 2004, Linear models and empirical Bayes methods, section 4.
    """
    found, known = 0.0, prior.freedom * prior.value
    for value, freedom in parts:
        both = prior.freedom + freedom
        found += math.lgamma(both / 2) - math.lgamma(prior.freedom / 2)
        found += (prior.freedom * math.log(known) - both * math.log(known + freedom * value)) / 2
    return found


def likeliest(parts: Sequence[Variance], freedom: float) -> float:
    """The value of a prior with these degrees of freedom that makes the variances likeliest: there the slope is 0."""

    def slope(value: float) -> float:
        moderated = (pooled((Variance(value, freedom), part)).value for part in parts)
        return sum(
            part.freedom * (part.value / each - 1) for part, each in zip(parts, moderated, strict=True)
        )

    return zero_of(slope, min(parts).value, max(parts).value)


def with_least(parts: Sequence[Variance]) -> list[Variance]:
    """Seeds may agree to the last digit: they get a least variance, because no prior explains a variance of 0."""
    least = 1e-5 * (median(part.value for part in parts) or pooled(parts).value)
    return [Variance(max(part.value, least), part.freedom) for part in parts]


def zero_of(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function of positive numbers is 0, between low and high, to 6 digits."""
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


@lru_cache
def student(x: float, freedom: float) -> float:
    """What a variable of Student's t exceeds as rarely as a normal one exceeds x; freedom >= 1."""
    if freedom > 1e6:
        return x
    rare = 1 - NormalDist().cdf(x)
    return zero_of(lambda decisive: exceeds(decisive, freedom) - rare, x, 1e4)


def exceeds(x: float, freedom: float) -> float:
    """How probably a variable of Student's t exceeds x: with t = sqrt(freedom) tan(angle), an integral of a cosine."""
    start, parts = math.atan(x / math.sqrt(freedom)), 200
    end = min(math.pi / 2, start + 6 / math.sqrt(freedom))  # behind it there is next to nothing
    step = (end - start) / parts
    area = step * sum(math.cos(start + (part + 0.5) * step) ** (freedom - 1) for part in range(parts))
    whole = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return area * math.exp(whole) / math.sqrt(math.pi)
