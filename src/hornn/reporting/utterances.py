"""How far word error rates depend on which speakers were tested."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hornn.reporting.lines import Line
from hornn.reporting.scores import metric_value
from hornn.reporting.variances import Variance

RATE, ERRORS, WORDS, SPEAKERS = "test_wer", "test_errors", "test_words", "test_speakers"
DRAWS = 10_000  # of the bootstrap
HELD = 1_000_000  # numbers drawn at a time, so that a long test set takes no more memory


def error_over_speakers(metric: str, *lines: Line) -> Variance | None:
    """The squared standard error of a row's word error rate, in percent of the words; of two rows, of their ratio times
    the rate of the second. All are means over seeds.

    None where no errors of utterances are known. Known they are of a metric `test_wer…`, from results that hold the
    errors and the words of each test utterance.
    """
    if not metric.startswith(RATE):
        return None
    key = ERRORS + metric.removeprefix(RATE)
    runs = [run.result for line in lines for run in line.measured]
    sides = [[counts(run.result, key) for run in line.measured] for line in lines]
    said = [counts(result, WORDS) for result in runs]
    if not all(sides) or any(len(each) != len(said[0]) for side in (*sides, said) for each in side):
        return None
    if len(said[0]) < 2 or any((each != said[0]).any() for each in said) or not said[0].all():
        return None
    errors, *second = [np.mean(side, axis=0) for side in sides]
    for other in second:  # a ratio differs from set to set by what is left of this difference, to first order
        errors = errors - (errors.sum() / other.sum() if other.any() else 1.0) * other
    speakers = speakers_of(runs[0], len(said[0]))
    errors, words = (np.bincount(speakers, each) for each in (errors, said[0]))
    return Variance(bootstrap_error(errors, words) ** 2, len(words) - 1)


def speakers_of(result: Mapping[str, Any], utterances: int) -> np.ndarray:
    """(U,) int64: the speaker of each test utterance.

    Older results hold only how many speakers there are. AN4 lists one speaker's utterances after another's, as many of
    each. Where that cannot be, each utterance counts as a speaker.
    """
    named = counts(result, SPEAKERS)
    if len(named) == utterances and len(set(named)) > 1:
        return np.unique(named, return_inverse=True)[1]
    number = metric_value(result, "corpus.speakers.test") or 0.0
    known = number > 1 and number.is_integer() and utterances % number == 0
    return np.arange(utterances) // (utterances // int(number) if known else 1)


def counts(result: Mapping[str, Any], key: str) -> np.ndarray:
    """(U,) int64: the numbers of a text, of at most nine digits each; empty where it holds anything else."""
    words = str(result.get(key, "")).split()
    fit = all(word.isdecimal() and len(word) < 10 for word in words)
    return np.array([int(word) for word in words] if fit else [], dtype=np.int64)


def bootstrap_error(errors: np.ndarray, words: np.ndarray) -> float:
    """The standard deviation of a word error rate, in percent, over test sets of speakers drawn with replacement.

    A speaker's utterances are drawn together, because their errors are alike.
    errors: (S,) of each speaker; two recognisers are compared by a difference of their errors, so that both hear the
    same draws. words: (S,) how many were said.
    Source: Bisani & Ney 2004, Bootstrap estimates for confidence intervals in ASR performance evaluation.
    """
    speakers, draw, rates = len(words), np.random.default_rng(0), np.empty(DRAWS)
    block = max(1, HELD // speakers)
    for start in range(0, DRAWS, block):
        drawn = draw.integers(speakers, size=(min(block, DRAWS - start), speakers))
        rates[start : start + block] = 100 * errors[drawn].sum(1) / words[drawn].sum(1)
    # The bootstrap's variance is too small by this much: its draws are about the mean of the sample.
    return float(np.std(rates)) * (speakers / (speakers - 1)) ** 0.5
