"""How much better one row is than another: the number, its bound where a mean is one, and the same in words."""

import math
from collections.abc import Callable, Collection, Sequence
from statistics import fmean
from typing import Any

from hornn.reporting.lines import Line
from hornn.reporting.numbers import (
    AT_LIMIT_SIGN,
    AT_MOST_SIGN,
    UNVERIFIED_SIGN,
    format_number,
    is_count,
    percent,
)
from hornn.reporting.scores import DYNAMIC_EVALUATION, Score, is_unverified, metric_value
from hornn.reporting.sweeps import Metric

WORSE_THAN_PUBLISHED = 0.1  # by what share a result is behind the published one, for a claim to say so


def gain_of(one: float, other: float, metric: Metric) -> float:
    """How much better the first number is, relative to the other; infinite where that is 0 and the first is not."""
    difference = other - one if metric.lower_is_better else one - other
    return difference / other if other else math.copysign(math.inf, difference) if difference else 0.0


def compare_rows(
    pair: Sequence[Line],
    metric: Metric,
    value: Callable[[Any], float],
    published: Collection[Line],
) -> tuple[str, float]:
    """How much better the first of two lines is, in words and relative to the second.

    published: the lines whose number here is the published one; it has a sign where it is not verified, and a measured
    one where it is a lower bound.
    """
    scores = [line.scores[metric.key] for line in pair]
    one, other = map(value, scores)
    gain = gain_of(one, other, metric)
    names = []
    for line, score in zip(pair, scores, strict=True):
        theirs = line in published
        before, after = (
            "" if theirs else bound_sign(score),
            UNVERIFIED_SIGN * (theirs and is_unverified(score)),
        )
        names.append(f"{line.row.label}: {before}{in_claims(metric, value(score))}{after}")
    ahead, behind = ("better", "worse") if metric.lower_is_better is not None else ("more", "less")
    share = f"{percent(abs(gain))} " if math.isfinite(gain) else ""
    return f"{'; '.join(names)}; {share}{ahead if gain >= 0 else behind}", gain


def in_claims(metric: Metric, value: float) -> str:
    """A number as claims have it."""
    return format_number(metric.key, value) if is_count(metric.key) else f"{value:.4g}"


def bound_of_gain(pair: Sequence[Line], metric: Metric) -> str | None:
    """What stands before the first row's gain on the second where one number is a lower bound; None where both are."""
    first, second = (line.scores[metric.key].at_limit for line in pair)
    if first == second:
        return None if first else ""
    return AT_LIMIT_SIGN if first != bool(metric.lower_is_better) else AT_MOST_SIGN


def bound_sign(score: Score) -> str:
    """What stands before a mean that is a lower bound; empty before another one."""
    return f"{AT_LIMIT_SIGN} " * score.at_limit


def may_turn(pair: Sequence[Line], metric: Metric, above: bool) -> bool:
    """Whether a measured number that is a lower bound may, by its true value, take a gain to the other side of a limit.

    above: whether the gain that we measured is above the limit.
    """
    first, second = (line.scores[metric.key].at_limit for line in pair)
    return second if above != bool(metric.lower_is_better) else first


def distance_of(gain: float, limit: float, error: float, lower_is_better: bool) -> float | None:
    """How many standard errors a gain is from a limit; None without an error.

    Both are compared as logarithms of ratios, so that a gain and the loss that takes it back are as far from 0.
    """
    ratio, bound = ((1 - each if lower_is_better else 1 + each) for each in (gain, limit))
    if not error:
        return None
    if ratio <= 0 or bound <= 0 or math.isinf(ratio):
        return abs(gain - limit) / error
    return abs(math.log(ratio / bound)) * ratio / error


def note_on_shortfall(line: Line, metric: Metric) -> str:
    """How far a row stays behind its own published number, in words; empty where that is not far."""
    relative = line.scores[metric.key].relative_difference
    if relative is None or line.row.dynamic:
        return ""
    behind = relative if metric.lower_is_better else -relative
    return (
        f"{line.row.label} itself is {percent(behind, 0)} worse than published"
        if behind > WORSE_THAN_PUBLISHED
        else ""
    )


def note_on_dynamic_evaluation(line: Line, metric: str) -> str:
    """The measured number of a row by dynamic evaluation, which its published number used; empty if not known."""
    values = [
        metric_value(run.result, DYNAMIC_EVALUATION + metric) for run in line.measured if line.row.dynamic
    ]
    known = [value for value in values if value is not None]
    return f"{line.row.label} by dynamic evaluation, as published: {fmean(known):.4g}" if known else ""
