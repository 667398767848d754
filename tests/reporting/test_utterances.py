"""Differences of word error rates over utterances."""

from typing import Any

import numpy as np
import pytest

from hornn.reporting.utterances import paired_interval
from reporting.place import CLAIMS, SWEEP, claims_of


def test_a_paired_interval_holds_the_difference_and_shrinks() -> None:
    rng = np.random.default_rng(0)
    words = np.full(400, 6)
    first, second = rng.binomial(6, 0.2, 400), rng.binomial(6, 0.1, 400)
    difference, low, high = paired_interval(first, second, words)
    assert low < difference < high
    assert 0 < low < 10 < high < 15
    assert paired_interval(first, first, words) == (0, 0, 0)
    _, wide_low, wide_high = paired_interval(first[:50], second[:50], words[:50])
    assert wide_high - wide_low > 2 * (high - low)


@pytest.fixture
def heard(place: Any) -> Any:
    """Two rows with word errors of 40 utterances; the second made as many as given in each of the first four."""
    text = SWEEP.replace("test_ppl", "test_wer").replace("  figure:", CLAIMS + "  figure:", 1)
    place.write_sweep("toy", text)

    def hear(errors: str, **changes: Any) -> list[str]:
        for row, made in (("rnn", errors), ("max-2", "0 0 0 0")):
            rest = " 1" * 36
            known = {"test_words": "6 " * 40, "test_errors": made + rest, **changes}
            wer = 100 * sum(map(int, (made + rest).split())) / 240
            place.commit(row, 1, valid_nll=1.0, test_wer=wer, **known)
        return [claim for claim in claims_of(place) if "max beats the RNN" in claim]

    return hear


def test_a_claim_is_undecided_where_other_utterances_might_decide_otherwise(heard: Any) -> None:
    (claim,) = heard("1 0 0 0")
    assert "a difference of -0.42 points, over utterances from -1.25 to +0.00" in claim
    assert claim.endswith("Outcome: undecided (other utterances might have decided otherwise).")


def test_a_claim_that_most_utterances_bear(heard: Any) -> None:
    (claim,) = heard("6 6 6 6")
    assert "undecided" not in claim


@pytest.mark.parametrize("words", ["", "6 six", "6", "0 " * 40])
def test_without_the_words_of_utterances_seeds_alone_decide(heard: Any, words: str) -> None:
    (claim,) = heard("1 0 0 0", test_words=words)
    assert "utterances" not in claim
