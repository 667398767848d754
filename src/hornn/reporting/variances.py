"""Variances that samples tell: whether they are alike, how far each counts where they are not, and what they decide."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, median
from typing import NamedTuple

UNLIKE = 0.01  # how rarely chance makes equal variances look so different


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
    uncertain = sum(part.value**2 / part.freedom for part in parts)
    return Variance(value, value**2 / uncertain if uncertain else math.inf)


def pooled(parts: Sequence[Variance]) -> Variance:
    """The variance of samples whose variances are alike; without a degree of freedom it is 0."""
    freedom = sum(part.freedom for part in parts)
    return Variance(sum(part.freedom * part.value for part in parts) / freedom if freedom else 0.0, freedom)


class Prior(NamedTuple):
    """What the rows of a table say of each other's variance: it counts as so many degrees of freedom of each row."""

    value: float
    freedom: float

    def moderate(self, own: Variance) -> Variance:
        """The variance of a row, drawn from its own towards the others'."""
        if math.isinf(self.freedom):
            return Variance(self.value)
        freedom = self.freedom + own.freedom
        return Variance((self.freedom * self.value + own.freedom * own.value) / freedom, freedom)


def are_alike(parts: Sequence[Variance]) -> bool:
    """Bartlett's test: whether chance explains how far variances of the same size would differ.

    The quantile of chi squared is the one of Wilson and Hilferty.
    Source: Bartlett 1937, Properties of sufficiency and statistical tests.
    """
    others, whole = len(parts) - 1, pooled(parts)
    if not others or not whole.value:
        return True
    squared = sum(part.freedom * math.log(whole.value / part.value) for part in with_least(parts))
    squared /= 1 + (sum(1 / part.freedom for part in parts) - 1 / whole.freedom) / (3 * others)
    share = 2 / (9 * others)
    normal = ((max(squared, 0) / others) ** (1 / 3) - 1 + share) / math.sqrt(share)
    return normal < NormalDist().inv_cdf(1 - UNLIKE)


def prior_of(parts: Sequence[Variance]) -> Prior:
    """The prior that explains how far the variances of the rows differ.

    Source: Smyth 2004, Linear models and empirical Bayes methods, section 6.2: the logarithms of the variances have a
    mean and a variance that depend on the prior alone.
    """
    logs = [
        math.log(part.value) - digamma(part.freedom / 2) + math.log(part.freedom / 2)
        for part in with_least(parts)
    ]
    mean = fmean(logs)
    excess = sum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    excess -= fmean(trigamma(part.freedom / 2) for part in parts)
    if excess <= 0:
        return Prior(pooled(parts).value, math.inf)
    half = inverse_trigamma(excess)
    return Prior(math.exp(mean + digamma(half) - math.log(half)), 2 * half)


def with_least(parts: Sequence[Variance]) -> list[Variance]:
    """Seeds that agree by chance, or to the last digit that counts, have no logarithm: a least variance for them."""
    least = 1e-5 * (median(part.value for part in parts) or pooled(parts).value)
    return [Variance(max(part.value, least), part.freedom) for part in parts]


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function, x > 0: Abramowitz & Stegun, equations 6.3.5 and 6.3.18."""
    below = 0.0
    while x < 10:
        below += 1 / x
        x += 1
    return math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) - below


def trigamma(x: float) -> float:
    """The derivative of `digamma`, x > 0: Abramowitz & Stegun, equations 6.4.6 and 6.4.12."""
    below = 0.0
    while x < 10:
        below += 1 / x**2
        x += 1
    return 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5) + 1 / (42 * x**7) + below


def inverse_trigamma(value: float) -> float:
    """The x > 0 with this trigamma, which falls."""
    low, high = 1e-8, 1e8
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return low


@lru_cache
def student(x: float, freedom: float) -> float:
    """What a variable of Student's t exceeds as rarely as a normal one exceeds x; freedom >= 1."""
    if freedom > 1e6:
        return x
    rare, low, high = 1 - NormalDist().cdf(x), x, 1e4
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if exceeds(middle, freedom) > rare else (low, middle)
    return low


def exceeds(x: float, freedom: float) -> float:
    """How probably a variable of Student's t exceeds x: with t = sqrt(freedom) tan(angle), an integral of a cosine."""
    start, parts = math.atan(x / math.sqrt(freedom)), 100
    step = (math.pi / 2 - start) / parts
    area = step * sum(math.cos(start + (part + 0.5) * step) ** (freedom - 1) for part in range(parts))
    whole = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return area * math.exp(whole) / math.sqrt(math.pi)
