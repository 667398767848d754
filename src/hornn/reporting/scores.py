"""The numbers of one row: what a result file says of a metric, and ours by seed beside the published one."""

import math
import re
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hornn.metrics import bits
from hornn.reporting.numbers import DYNAMIC_SIGN, OTHER_CORPUS_SIGN, UNVERIFIED_SIGN
from hornn.reporting.runs import Run
from hornn.reporting.sweeps import Metric, Published, Sweep
from hornn.result import MEMORY, of_characters, score_of, unit_of

TEST_SCORES = ("test_ppl", "test_bpc", "test_nll")  # by which words, characters and music are compared
SIGNS = (UNVERIFIED_SIGN, DYNAMIC_SIGN, OTHER_CORPUS_SIGN)
DYNAMIC_EVALUATION = "dynamic."  # begins the scores of a run that is evaluated so, too
# What counts steps back, of which `lags` were looked at.
REACHES = tuple(
    f"{MEMORY}.summary.{key}" for key in ("gradient_reach", "gradient_reach_at_start", "effective_memory")
)
# Begin what a run has only where somebody asked for it, and the score that the poster alone has.
ON_DEMAND = (DYNAMIC_EVALUATION, f"{MEMORY}.", "wer_cn")


class Score(NamedTuple):
    """One metric of one row: what was published, ours by seed, ours of the seed that validation finds best.

    at_limit: one of ours is the greatest number that its run looked for, so that the mean is a lower bound.
    """

    published: Published | None
    values: tuple[float, ...]
    best: float | None
    at_limit: bool = False

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the sample: divided by n - 1."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        if self.mean is None or self.comparable is None:
            return None
        return self.mean - self.comparable

    @property
    def relative_difference(self) -> float | None:
        """(ours - published) / published."""
        return self.difference / self.comparable if self.difference is not None and self.comparable else None

    @property
    def comparable(self) -> float | None:
        """The published number, if it is of the corpus that the runs read."""
        return self.published.value if self.published and not self.published.corpus else None


def is_at_limit(result: Mapping[str, Any], key: str) -> bool:
    """Whether a number of steps is all that the analysis looked at: the true one may be greater."""
    limit = metric_value(result, f"{MEMORY}.settings.lags")
    value = metric_value(result, key)
    return key in REACHES and limit is not None and value is not None and value >= limit


def has_published(score: Score | None) -> bool:
    return score is not None and score.published is not None and score.published.value is not None


def is_unverified(score: Score | None) -> bool:
    """Whether its published number is recalled or second-hand."""
    return score is not None and score.published is not None and not score.published.verified


def signs_of_published(published: Published, dynamic: bool) -> str:
    """What a reader must know of a published number, as `SIGN_MEANINGS` has it. dynamic: of its row."""
    told = (not published.verified, dynamic, published.corpus)
    return "".join(sign for sign, holds in zip(SIGNS, told, strict=True) if holds)


def published_value(score: Any) -> float:
    """The published number of a score that has one."""
    return float(score.published.value)


def metric_value(result: Mapping[str, Any], key: str) -> float | None:
    """A number of result.json; None where it has none.

    `corpus.tokens.train` leads inside, and so does `metrics.4.valid_ppl`: of the fifth epoch; `-1` is the last one.
    """
    if key.endswith("_bpc"):
        perplexity = metric_value(result, key.removesuffix("_bpc") + "_ppl")
        return bits(math.log(perplexity)) if perplexity and perplexity > 0 and of_characters(result) else None
    value: Any = result
    for word in key.split("."):
        if isinstance(value, list) and re.fullmatch(r"-1|\d{1,4}", word):
            value = (value[int(word) :] or [None])[0]
        else:
            value = value.get(word) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else None


def key_of(result: Mapping[str, Any], split: str) -> str:
    """The score by which a result is read on a split: bits of characters, else perplexity or nats."""
    return f"{split}_{'bpc' if of_characters(result) else unit_of(result)}"


def has_other_unit(metric: Metric, sweep: Sweep, result: Mapping[str, Any]) -> bool:
    """Whether a table of both has the bits of characters, or the perplexity of words, in the place of this."""
    name, _, unit = metric.key.rpartition("_")
    unfit, fit = ("ppl", "bpc") if of_characters(result) else ("bpc", "ppl")
    return unit == unfit and any(other.key == f"{name}_{fit}" for other in sweep.metrics)


def best_by_validation(runs: Iterable[Run]) -> Run | None:
    """The run with the lowest validation score: the test text has no say in it."""
    judged = [run for run in runs if score_of(run.result, "valid") is not None]
    return min(judged, key=lambda run: score_of(run.result, "valid") or 0.0, default=None)
