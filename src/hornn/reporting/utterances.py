"""How far word error rates depend on which utterances were tested."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hornn.reporting.lines import Line

RATE, ERRORS, WORDS = "test_wer", "test_errors", "test_words"
DRAWS = 10_000  # of the bootstrap


def error_over_utterances(metric: str, *lines: Line) -> float | None:
    """The standard error of a row's word error rate, or of how far a second row's is from it, means over seeds.

    None where no errors of utterances are known. Known they are of a metric `test_wer…`, from results that hold the
    errors and the words of each test utterance.
    """
    if not metric.startswith(RATE):
        return None
    key = ERRORS + metric.removeprefix(RATE)
    sides = [[counts(run.result, key) for run in line.measured] for line in lines]
    said = [counts(run.result, WORDS) for line in lines for run in line.measured]
    if not all(sides) or any(len(each) != len(said[0]) for side in (*sides, said) for each in side):
        return None
    if not len(said[0]) or any((each != said[0]).any() for each in said) or not said[0].all():
        return None
    first, *second = [np.mean(side, axis=0) for side in sides]
    return bootstrap_error(first - sum(second), said[0])


def counts(result: Mapping[str, Any], key: str) -> np.ndarray:
    """(U,) int64: the numbers of a text; empty where it holds anything else."""
    words = str(result.get(key, "")).split()
    return np.array([int(word) for word in words] if all(map(str.isdecimal, words)) else [], dtype=np.int64)


def bootstrap_error(errors: np.ndarray, words: np.ndarray, seed: int = 0) -> float:
    """The standard deviation of a word error rate, in percent, over test sets of utterances drawn with replacement.

    errors: (U,) of each utterance; two recognisers are compared by the difference of their errors, so that both hear
    the same draws. words: (U,) how many were said.
    Source: Bisani & Ney 2004, Bootstrap estimates for confidence intervals in ASR performance evaluation.
    """
    draws = np.random.default_rng(seed).integers(len(words), size=(DRAWS, len(words)))
    return float(np.std(100 * errors[draws].sum(1) / words[draws].sum(1)))
