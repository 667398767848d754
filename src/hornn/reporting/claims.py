"""What became of a paper's claims about its rows, by the measured numbers."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from hornn.reporting.claimed import QUOTED, Claim
from hornn.reporting.gains import (
    bound_of_gain,
    bound_sign,
    compare_rows,
    distance_of,
    in_claims,
    may_turn,
    note_on_dynamic_evaluation,
    note_on_shortfall,
)
from hornn.reporting.lines import CONFLICT, Line, by_one_recipe, departures_of, what_differs
from hornn.reporting.numbers import AT_MOST_SIGN, is_count, percent
from hornn.reporting.scores import SIGNS, has_published, published_value, signs_of_published
from hornn.reporting.seeds import Errors, errors_of_gain, errors_of_mean, spread_for
from hornn.reporting.sweeps import Metric, Sweep
from hornn.result import score_of

CONFIRMED, IN_DIRECTION, REFUTED = "confirmed", "confirmed in direction", "not confirmed"
UNDECIDED, NOT_JUDGED, NOT_MEASURED = "undecided", "not judged", "not measured yet"
FOR, AGAINST = "a tendency for it", "a tendency against it"  # the sign alone: no standard error is known
REASONS = {
    IN_DIRECTION: "less than 50 % of the published gain",
    UNDECIDED: "under {:.1f} standard errors",
    NOT_JUDGED: "the rows are not trained by one recipe",
}
BEHIND = "it is even behind"  # of a row that gains so much at most
AT_LIMIT = "a seed reached the last step that was looked at: the true mean may turn this round"
AGAINST_PUBLISHED = "against the published numbers"  # which do not bear the claim themselves


class Verdict(NamedTuple):
    """What became of a claim.

    `metric` is what both numbers are of. `published` and `measured` say in words which numbers decide, `published` is
    empty where the paper gives none. Gains are relative to the row that the claim calls worse; `error` is the standard
    error of the measured gain, None with too few seeds. `bound` is ≥ or ≤ where one of the measured numbers is a lower
    bound, and so the gain; it then has no error. Where both numbers are, there is no gain. The signs say what a reader
    must know of the published numbers behind a gain; behind a measured one there are some where a row is quoted.
    `outcome` is one of the words above, `reason` says why where it needs one. `of_paper`: the paper makes the claim, by
    its numbers or in its words. While a row of the claim is not measured, there is no gain.
    """

    says: str
    metric: Metric
    published: str
    measured: str
    outcome: str
    published_gain: float | None
    gain: float | None
    error: float | None
    of_paper: bool
    published_signs: str = ""
    measured_signs: str = ""
    reason: str = ""
    bound: str = ""

    @property
    def judged_on(self) -> str:
        """What decides in the place of a score of the test split; empty where such a score does."""
        split = self.metric.key.partition("_")[0]
        return {"test": "", "valid": "validation"}.get(split, self.metric.label)

    @property
    def evidence(self) -> str:
        """The numbers, published and measured, and the outcome, in sentences."""
        published = f"Published: {self.published}. " if self.published else ""
        reason = f" ({self.reason})" if self.reason else ""
        measured = f"Measured: {self.measured}. " if self.measured else ""
        return f"{published}{measured}Outcome: {self.outcome}{reason}."

    def __str__(self) -> str:
        return f"Claim: {self.says}. {self.evidence}"


def tally(outcome: str, verdicts: Iterable[Verdict]) -> str:
    """How many claims have this outcome; empty if none."""
    return str(sum(verdict.outcome == outcome for verdict in verdicts) or "")


def judge_claim(claim: Claim, sweep: Sweep, lines: Sequence[Line]) -> Verdict:
    """Whether the measured numbers bear a claim of the paper, or that not all of its rows are measured."""
    sides = [
        [standing(line, claim.metric) for line in lines if line.row.name in names]
        for names in (claim.better, claim.than)
    ]
    scores = [line.scores.get(claim.metric) for side in sides for line in side]
    is_measured = all(score is not None and score.mean is not None for score in scores)
    if not claim.than and is_measured:
        return judge_bound(claim, sweep, min(sides[0], key=mean_validation), lines)
    verdict = as_published(claim, sweep, sides)
    if not is_measured:
        states = [(line.row.label, line.status) for side in sides for line in side]
        if conflicts := [label for label, state in states if state == CONFLICT]:
            return verdict._replace(
                outcome=NOT_JUDGED, reason=f"the runs of {', '.join(conflicts)} do not agree"
            )
        reasons = [f"{each} diverged" for each, state in states if state == "diverged"]
        if all(line.measured for side in sides for line in side):
            reasons.append(f"results hold no {claim.metric}")
        return verdict._replace(reason=", ".join(reasons))
    best = [min(side, key=mean_validation) for side in sides]
    if reason := what_differs(best, claim.metric):
        each = (f"{line.row.label}: {line.scores[claim.metric].mean:.4g}" for line in best)
        return verdict._replace(measured="; ".join(each), outcome=NOT_JUDGED, reason=reason)
    return judge_gain(claim, sweep, verdict, best, lines)


def judge_gain(
    claim: Claim, sweep: Sweep, verdict: Verdict, best: Sequence[Line], lines: Sequence[Line]
) -> Verdict:
    """Whether the gain of one measured row on another bears a claim; `verdict`: what is published of it."""
    quoted = [line for line in best if line.row.state == QUOTED]
    text, gain = compare_rows(best, verdict.metric, lambda score: score.mean, quoted)
    errors = errors_of_gain(best[0], best[1], claim.metric, spread_for(best, claim.metric, lines))
    bound = bound_of_gain(best, verdict.metric)
    outcome, reason = decide(claim, verdict, best, gain, errors, same_data=not sweep.published_on)
    return verdict._replace(
        measured=f"{text} ({words_on_gain(claim, verdict.metric, best, gain, errors)})",
        measured_signs=signs_of(quoted, claim.metric),
        outcome=outcome,
        gain=None if bound is None else gain,
        error=None if bound != "" or is_count(claim.metric) else errors.total,
        reason=reason,
        bound=bound or "",
    )


def decide(
    claim: Claim, verdict: Verdict, best: Sequence[Line], gain: float, errors: Errors, same_data: bool
) -> tuple[str, str]:
    """The outcome of a claim by a measured gain, and why; the first rule that applies counts.

    same_data: the published gain is on these data, so that sizes can be compared.
    """
    if not by_one_recipe(best):
        return NOT_JUDGED, reason_of(NOT_JUDGED, errors)
    claimed = verdict.published_gain
    outcome = settle(claim.holds(gain), distance_from(claim.limit, gain, errors, verdict.metric), errors)
    if outcome == UNDECIDED:
        return UNDECIDED, reason_of(UNDECIDED, errors)
    if may_turn(best, verdict.metric, gain > claim.limit / 100):
        return NOT_JUDGED, AT_LIMIT
    if outcome in (REFUTED, AGAINST):
        return outcome, ""
    if claimed is not None and claim.is_against(claimed):
        return outcome, AGAINST_PUBLISHED
    if claim.at_most is None and outcome == CONFIRMED and claimed and same_data and gain < claimed / 2:
        return IN_DIRECTION, reason_of(IN_DIRECTION, errors)
    if gain < 0 and (distance_from(0.0, gain, errors, verdict.metric) or 0.0) >= errors.decisive:
        return outcome, BEHIND
    return outcome, ""


def words_on_gain(claim: Claim, metric: Metric, best: Sequence[Line], gain: float, errors: Errors) -> str:
    """How far a measured gain of rows can be trusted, and what else a reader must know of them."""
    seeds = [len(line.scores[metric.key].values) for line in best if line.row.state != QUOTED]
    trust = f"{' and '.join(map(str, seeds))} seed{'s' * (sum(seeds) > 1)}"
    if seeds == [1, 1]:
        trust = "one seed each"
    distance = distance_from(claim.limit, gain, errors, metric)
    if is_count(metric.key):
        trust = "counted"
    elif distance is not None and bound_of_gain(best, metric) == "":
        limit = f" from {claim.limit:g} %" if claim.limit else ""
        trust = f"{distance:.1f} standard errors{limit}, {trust}"
    told = [trust, parts_of_error(errors)]
    told += [
        f"{line.row.label} by dynamic evaluation"
        for line in best
        if line.row.state == QUOTED and line.row.dynamic
    ]
    told += [note_on_shortfall(line, metric) for line in best]
    told += [note_on_dynamic_evaluation(line, metric.key) for line in best]
    return "; ".join(filter(None, told))


def distance_from(limit: float, gain: float, errors: Errors, metric: Metric) -> float | None:
    """How many standard errors a gain is from so many per cent; None without an error."""
    return distance_of(gain, limit / 100, errors.of_all.root, bool(metric.lower_is_better))


def standing(line: Line, metric: str) -> Line:
    """The line as a claim takes it: a quoted row stands by its published number, of which no error is known."""
    score = line.scores.get(metric)
    if line.row.state != QUOTED or score is None or score.comparable is None:
        return line
    return line._replace(scores={**line.scores, metric: score._replace(values=(score.comparable,))})


def signs_of(lines: Iterable[Line], metric: str) -> str:
    """What a reader must know of their published numbers."""
    known = "".join(signs_of_published(line.row.published[metric], line.row.dynamic) for line in lines)
    return "".join(sign for sign in SIGNS if sign in known)


def judge_bound(claim: Claim, sweep: Sweep, line: Line, lines: Sequence[Line]) -> Verdict:
    """Whether the measured number of a row is at most what a claim says; the gain is how far it is below, relative."""
    score, limit = line.scores[claim.metric], claim.at_most or 0.0
    value, seeds = score.mean or 0.0, len(score.values)
    errors = errors_of_mean(line, claim.metric, spread_for([line], claim.metric, lines))
    known = errors.of_all.root
    distance = abs(value - limit) / known if known else None
    outcome, reason = settle(value <= limit, distance, errors), ""
    if score.at_limit and outcome != UNDECIDED and value <= limit:
        outcome, reason = NOT_JUDGED, AT_LIMIT
    if departures_of(line):
        outcome, reason = NOT_JUDGED, "the row departs from its recipe"
    verdict = not_measured(claim, sweep)
    number, allowed = (in_claims(verdict.metric, each) for each in (value, limit))
    counted = is_count(claim.metric)
    trust = "counted" if counted else f"{seeds} seed{'s' * (seeds > 1)}"
    trust = trust if distance is None else f"{distance:.1f} standard errors from {allowed}, {trust}"
    return verdict._replace(
        measured=f"{line.row.label}: {bound_sign(score)}{number}, where at most {allowed} is claimed ({trust})",
        outcome=outcome,
        gain=(limit - value) / limit,
        error=None if errors.total is None or score.at_limit or counted else errors.total / limit,
        reason=reason or reason_of(outcome, errors),
        bound=AT_MOST_SIGN * score.at_limit,
    )


def settle(holds: bool, distance: float | None, errors: Errors) -> str:
    """The outcome for measured numbers that bear a claim out or not, so many standard errors from the contrary."""
    if distance is not None and distance < errors.decisive:
        return UNDECIDED
    if errors.total is None:
        return FOR if holds else AGAINST
    return CONFIRMED if holds else REFUTED


def reason_of(outcome: str, errors: Errors) -> str:
    return REASONS.get(outcome, "").format(errors.decisive)


def parts_of_error(errors: Errors) -> str:
    """The parts of the standard error of word errors, in words; empty for other metrics."""
    if not errors.of_speakers or not errors.of_speakers.value:
        return ""
    of_seeds = f"{percent(errors.of_seeds.root)} over seeds and " if errors.of_seeds else ""
    return f"a standard error of {of_seeds}{percent(errors.of_speakers.root)} over speakers"


def as_published(claim: Claim, sweep: Sweep, sides: Sequence[Sequence[Line]]) -> Verdict:
    """A verdict with the published numbers of the rows on both sides, before anything measured is compared."""
    verdict = not_measured(claim, sweep)
    metric = verdict.metric
    if not claim.than or not all(
        has_published(line.scores.get(metric.key)) for side in sides for line in side
    ):
        return verdict
    first = min if metric.lower_is_better else max
    theirs = [first(side, key=lambda line: published_value(line.scores[metric.key])) for side in sides]
    published, gain = compare_rows(theirs, metric, published_value, theirs)
    if any(line.row.dynamic for line in theirs):
        published += " (one of them by dynamic evaluation)"
    if sweep.published_on:
        published += f" (on {sweep.published_on})"
    return verdict._replace(
        published=published,
        published_gain=gain,
        of_paper=verdict.of_paper or not claim.is_against(gain),
        published_signs=signs_of(theirs, metric.key),
    )


def not_measured(claim: Claim, sweep: Sweep) -> Verdict:
    """What is known of a claim before anything is compared."""
    return Verdict(
        says=claim.says,
        metric=next(metric for metric in sweep.metrics if metric.key == claim.metric),
        published="",
        measured="",
        outcome=NOT_MEASURED,
        published_gain=None,
        gain=None,
        error=None,
        of_paper=bool(claim.where),
    )


def mean_validation(line: Line) -> float:
    """Its mean score on validation, which decides between several rows on one side of a claim."""
    return fmean([score_of(run.result, "valid") or math.inf for run in line.measured] or [math.inf])
