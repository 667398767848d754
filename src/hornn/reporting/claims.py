"""What became of a paper's claims about its rows, by our numbers."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from hornn.reporting.lines import Line, by_one_recipe
from hornn.reporting.scores import DYNAMIC_EVALUATION, has_published, metric_value, published_value
from hornn.reporting.seeds import spread_over_seeds, standard_errors
from hornn.reporting.sweeps import Claim, Sweep

CONFIRMED, REFUTED = "confirmed", "not confirmed"
IN_DIRECTION = "confirmed in direction, with less than half of the gain"
UNDECIDED = "not decided: under three standard errors"
DECISIVE_STANDARD_ERRORS = 3
WORSE_THAN_PUBLISHED = 0.1  # by what share a result is behind the published one, for a claim to say so


class Verdict(NamedTuple):
    """What became of a claim, each part in words; `published` is empty where the paper gives no number."""

    says: str
    published: str
    ours: str
    outcome: str

    def __str__(self) -> str:
        published = f" Published: {self.published}." if self.published else ""
        return f"Claim: {self.says}.{published} Ours: {self.ours}: {self.outcome}."


def judge_claim(claim: Claim, sweep: Sweep, lines: Sequence[Line]) -> Verdict | None:
    """Whether our numbers bear a claim of the paper; None while one of its rows is not measured."""
    sides = [[line for line in lines if line.row.name in names] for names in (claim.better, claim.than)]
    scores = [line.scores.get(claim.metric) for side in sides for line in side]
    if any(score is None or score.mean is None for score in scores):
        return None
    published, claimed = "", 0.0
    if all(has_published(score) for score in scores):
        first = min if sweep.lower_is_better else max
        theirs = [first(side, key=lambda line: published_value(line.scores[claim.metric])) for side in sides]
        published, claimed = compare_rows(theirs, claim.metric, sweep, published_value)
        if any(line.row.dynamic for line in theirs):
            published += " (one of them by dynamic evaluation)"
    best = [min(side, key=mean_validation) for side in sides]
    text, gain = compare_rows(best, claim.metric, sweep, lambda score: score.mean)
    one, other = (line.scores[claim.metric] for line in best)
    limit = (claim.at_most or 0.0) / 100
    distance = standard_errors(one, other, gain - limit, spread_over_seeds(claim.metric, lines))
    seeds = [len(score.values) for score in (one, other)]
    trust = "one seed each" if max(seeds) == 1 else f"{seeds[0]} and {seeds[1]} seeds"
    if distance is not None:
        trust = f"{distance:.1f} standard errors{f' from {claim.at_most:g}%' if limit else ''}, {trust}"
    known = [trust]
    known += [note_on_shortfall(line, claim.metric, sweep) for line in best]
    known += [note_on_dynamic_evaluation(line, claim.metric) for line in best]
    if not by_one_recipe(best):
        outcome = "not judged (not by one recipe)"
    elif distance is not None and distance < DECISIVE_STANDARD_ERRORS:
        outcome = UNDECIDED
    elif claim.at_most is not None:
        outcome = CONFIRMED if 100 * gain <= claim.at_most else REFUTED
    elif gain <= 0:
        outcome = REFUTED
    else:
        outcome = IN_DIRECTION if gain < claimed / 2 else CONFIRMED
    return Verdict(claim.says, published, f"{text} ({'; '.join(filter(None, known))})", outcome)


def mean_validation(line: Line) -> float:
    """Its mean perplexity on validation, which decides between several rows on one side of a claim."""
    return fmean(metric_value(run.result, "valid_ppl") or math.inf for run in line.measured)


def compare_rows(
    pair: Sequence[Line], metric: str, sweep: Sweep, value: Callable[[Any], float]
) -> tuple[str, float]:
    """How much better the first of two lines is, in words and relative to the second."""
    one, other = (value(line.scores[metric]) for line in pair)
    gain = (other - one) / other if sweep.lower_is_better else (one - other) / other
    names = [f"{line.row.label}: {each:.4g}" for line, each in zip(pair, (one, other), strict=True)]
    return f"{'; '.join(names)}; {abs(gain):.1%} {'better' if gain >= 0 else 'worse'}", gain


def note_on_shortfall(line: Line, metric: str, sweep: Sweep) -> str:
    """How far a row stays behind its own published number, in words; empty where that is not far."""
    relative = line.scores[metric].relative_difference
    if relative is None or line.row.dynamic:
        return ""
    behind = relative if sweep.lower_is_better else -relative
    return (
        f"{line.row.label} is itself {behind:.0%} worse than published"
        if behind > WORSE_THAN_PUBLISHED
        else ""
    )


def note_on_dynamic_evaluation(line: Line, metric: str) -> str:
    """What a row published with dynamic evaluation has by it here, in words; empty where that is not known."""
    values = [
        metric_value(run.result, DYNAMIC_EVALUATION + metric) for run in line.measured if line.row.dynamic
    ]
    known = [value for value in values if value is not None]
    return f"{line.row.label} by dynamic evaluation, as published: {fmean(known):.4g}" if known else ""
