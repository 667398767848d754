"""Variances that samples tell: how far each counts beside the others, and what they decide."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist, median
from typing import NamedTuple

FREEDOMS = tuple(2.0**power for power in range(9))  # of a prior: 1 tells little, 256 make all rows alike
OUTLIER = FREEDOMS[0]  # of an outlying row's prior
OUTLYING = 0.05  # how probably a row is outlying, as far as is known beforehand


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


NONE = Variance(0.0, 0)  # of a row with one seed: nothing is known


class Prior(NamedTuple):
    """What rows say of each other's variance: with each of FREEDOMS the likeliest value, and how much that counts.

    The variance of a row is drawn towards the mean value, which counts as so many degrees of freedom of the row as
    their harmonic mean says. So one seed more never switches from one rule to another. An outlying row has the fewest,
    OUTLIER: its seeds scatter for reasons of its own, which neither widen the others' errors nor narrow its own. As in
    Phipson et al. 2016, Robust hyperparameter estimation, it is told by its likelihood; here it is a mixture.
    """

    likeliest: tuple[Variance, ...]
    weights: tuple[float, ...]  # their sum is 1

    @property
    def value(self) -> float:
        return sum(weight * prior.value for weight, prior in zip(self.weights, self.likeliest, strict=True))

    def is_outlier(self, own: Variance) -> bool:
        """Whether a row's seeds scatter more probably for reasons of their own than as the other rows' do."""
        pairs = zip(self.weights, self.likeliest, strict=True)
        return sum(weight * is_like_others(own, prior) for weight, prior in pairs) < 0.5

    def freedom(self, own: Variance = NONE) -> float:
        """The degrees of freedom that it has beside a row's own variance, or beside none."""
        pairs = zip(self.weights, self.likeliest, strict=True)
        fits = [(weight, is_like_others(own, prior), prior.freedom) for weight, prior in pairs]
        return 1 / sum(weight * (like / freedom + (1 - like) / OUTLIER) for weight, like, freedom in fits)

    def moderate(self, own: Variance) -> Variance:
        """The variance of a row, of which `own` is known."""
        return pooled((Variance(self.value, self.freedom(own)), own))


@lru_cache
def prior_of(found: tuple[Variance, ...]) -> Prior:
    """The prior that explains how far the variances of the rows differ: by chance, or beyond chance."""
    parts = with_least(found)
    priors = tuple(Variance(likeliest(parts, freedom), freedom) for freedom in FREEDOMS)
    logs = [sum(log_mixture(part, prior) for part in parts) for prior in priors]
    weights = [math.exp(log - max(logs)) for log in logs]
    return Prior(priors, tuple(weight / sum(weights) for weight in weights))


def log_likelihoods(part: Variance, prior: Variance) -> tuple[float, float]:
    """Of a variance in a row like the others, and in an outlier, each with how probable such a row is."""
    like = math.log1p(-OUTLYING) + log_likelihood(part, prior)
    return like, math.log(OUTLYING) + log_likelihood(part, Variance(prior.value, OUTLIER))


def log_mixture(part: Variance, prior: Variance) -> float:
    """The logarithm of how likely a variance is where one row in many is an outlier."""
    like, unlike = log_likelihoods(part, prior)
    return max(like, unlike) + math.log1p(math.exp(-abs(like - unlike)))


def is_like_others(part: Variance, prior: Variance) -> float:
    """How probably a row is no outlier, given its variance."""
    like, unlike = log_likelihoods(part, prior)
    return (1 + math.tanh((like - unlike) / 2)) / 2


def log_likelihood(part: Variance, prior: Variance) -> float:
    """Of a variance, up to a constant: value / prior.value follows F with both degrees of freedom.

    Source: Smyth 2004, Linear models and empirical Bayes methods, section 4.
    """
    known, both = prior.freedom * prior.value, prior.freedom + part.freedom
    found = math.lgamma(both / 2) - math.lgamma(prior.freedom / 2)
    return found + (prior.freedom * math.log(known) - both * math.log(known + part.freedom * part.value)) / 2


def likeliest(parts: Sequence[Variance], freedom: float) -> float:
    """The value of a prior with these degrees of freedom that makes the variances likeliest: there the slope is 0."""

    def slope(value: float) -> float:
        prior, wide = Variance(value, freedom), Variance(value, OUTLIER)
        shares = ((part, is_like_others(part, prior)) for part in parts)
        return sum(like * pull(part, prior) + (1 - like) * pull(part, wide) for part, like in shares)

    return zero_of(slope, min(parts).value, max(parts).value)


def pull(part: Variance, prior: Variance) -> float:
    """The slope of log_likelihood over the logarithm of the prior's value, times 2."""
    return part.freedom * (part.value / pooled((prior, part)).value - 1)


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
