"""How far a difference of word error rates depends on which utterances were tested."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hornn.reporting.lines import Line

RATE, ERRORS, WORDS = "test_wer", "test_errors", "test_words"
DRAWS = 10_000  # of the bootstrap


class Interval(NamedTuple):
    """A difference of word error rates in percent of the words, and the ends of its 95 % interval."""

    difference: float
    low: float
    high: float

    @property
    def holds_zero(self) -> bool:
        return self.low <= 0 <= self.high

    def __str__(self) -> str:
        return f"{self.difference:+.2f} points, over utterances from {self.low:+.2f} to {self.high:+.2f}"


def interval_of(one: Line, other: Line, metric: str) -> Interval | None:
    """Of the rate of one row less the other's, means over seeds; None where no errors of utterances are known.

    Known they are of a metric `test_wer…`, from results that hold the errors and the words of each test utterance.
    """
    if not metric.startswith(RATE):
        return None
    key = ERRORS + metric.removeprefix(RATE)
    sides = [[counts(run.result, key) for run in line.measured] for line in (one, other)]
    said = [counts(run.result, WORDS) for line in (one, other) for run in line.measured]
    if not all(sides) or any(len(each) != len(said[0]) for each in (*sides[0], *sides[1], *said)):
        return None
    if not len(said[0]) or any((each != said[0]).any() for each in said) or not said[0].all():
        return None
    return paired_interval(np.mean(sides[0], axis=0), np.mean(sides[1], axis=0), said[0])


def counts(result: Mapping[str, Any], key: str) -> np.ndarray:
    """(U,) int64: the numbers of a text; empty where it holds anything else."""
    words = str(result.get(key, "")).split()
    return np.array([int(word) for word in words] if all(map(str.isdecimal, words)) else [], dtype=np.int64)


def paired_interval(first: np.ndarray, second: np.ndarray, words: np.ndarray, seed: int = 0) -> Interval:
    """The word error rate of one recogniser less another's.

    first, second: (U,) the errors of each utterance, means over seeds among them; words: (U,) how many were said.
    The interval is a paired bootstrap's: utterances are drawn with replacement, the same ones for both.
    Source: Bisani & Ney 2004, Bootstrap estimates for confidence intervals in ASR performance evaluation.
    """
    draws = np.random.default_rng(seed).integers(len(words), size=(DRAWS, len(words)))
    difference = np.asarray(first, dtype=np.float64) - second
    drawn = 100 * difference[draws].sum(1) / words[draws].sum(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(100 * float(difference.sum() / words.sum()), float(low), float(high))
