"""Differences of word error rates over utterances."""

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hornn.reporting.gains import distance_of
from hornn.reporting.seeds import Errors, errors_of_gain
from hornn.reporting.utterances import bootstrap_error, error_over_speakers
from reporting.place import CLAIMS, SWEEP, claims_of, line_of, table_of


def test_the_error_of_a_rate_is_that_of_binomial_errors_and_shrinks() -> None:
    """A paired difference of binomial errors, six words an utterance: sqrt(6 p (1 - p)) for each side."""
    rng = np.random.default_rng(0)
    words = np.full(400, 6)
    first, second = rng.binomial(6, 0.2, 400), rng.binomial(6, 0.1, 400)
    expected = 100 * math.sqrt((0.16 + 0.09) / 2400)
    assert bootstrap_error(first - second, words) == pytest.approx(expected, rel=0.1)
    assert bootstrap_error(first - first, words) == 0
    assert bootstrap_error((first - second)[:100], words[:100]) == pytest.approx(2 * expected, rel=0.2)


@pytest.fixture
def heard(place: Any) -> Any:
    """Two rows with word errors of 40 utterances; the second made as many as given in each of the first four."""
    text = SWEEP.replace("test_ppl", "test_wer").replace("  figure:", CLAIMS + "  figure:", 1)
    place.write_sweep("toy", text)

    def hear(errors: str, seeds: tuple[float, ...] = (0.0,), **changes: Any) -> list[str]:
        """`seeds`: how many points each seed is off."""
        rest = " 1" * (40 - len(errors.split()))
        for row, made in (("rnn", errors), ("max-2", "0 " * len(errors.split()))):
            known = {"test_words": "6 " * 40, "test_errors": made + rest, **changes}
            wer = 100 * sum(map(int, (made + rest).split())) / 240
            for seed, off in enumerate(seeds, 1):
                place.commit(row, seed, valid_nll=1.0, test_wer=wer + off, **known)
        return [claim for claim in claims_of(place) if "max beats the RNN" in claim]

    return hear


def test_a_claim_is_undecided_where_other_utterances_might_decide_otherwise(heard: Any) -> None:
    """One error of 37 is a difference of one standard error; without a spread over seeds, that decides nothing."""
    (claim,) = heard("1 0 0 0")
    assert "(1.0 standard errors, one seed each; a standard error of 2.7 % over speakers)" in claim
    assert claim.endswith("Outcome: undecided (under 3.2 standard errors).")


def test_a_claim_that_most_utterances_bear(heard: Any) -> None:
    (claim,) = heard("1 " * 30)
    assert claim.endswith("Outcome: a tendency for it.")


def test_the_errors_over_seeds_and_over_utterances_are_one(heard: Any, place: Any) -> None:
    """Neither of the two alone would leave the claim undecided."""
    (claim,) = heard("2 2 2 2 2 2 2 2 2 2 2 2", (-0.8, 0.0, 0.8))
    verdict = next(each for each in table_of(place).verdicts if each.says == "max beats the RNN")
    found = re.search(r"a standard error of (.*) % over seeds and (.*) % over speakers", claim)
    assert found
    seeds, utterances = (float(number) / 100 for number in found.groups())
    assert verdict.error == pytest.approx(math.hypot(seeds, utterances), rel=0.01)
    assert verdict.gain == pytest.approx(24 / 52)
    distance = -math.log(1 - verdict.gain) * (1 - verdict.gain) / verdict.error
    assert f"({distance:.1f} standard errors, 3 and 3 seeds" in claim


def test_at_most_is_tested_against_its_bound(heard: Any, place: Any) -> None:
    """A gain of 46 % is four standard errors from 0, and less than one from 40 %."""
    path = place.sweeps / "toy.yaml"
    path.write_text(
        path.read_text().replace("better: max-2, than: rnn", "better: max-2, than: rnn, at_most: 40")
    )
    (claim,) = heard("2 2 2 2 2 2 2 2 2 2 2 2")
    assert "(0.7 standard errors from 40 %, one seed each;" in claim
    assert claim.endswith("Outcome: undecided (under 3.2 standard errors).")


def test_a_gain_and_the_loss_that_takes_it_back_are_as_far_from_0(heard: Any, place: Any) -> None:
    heard("2 2 2 2 2 2 2 2 2 2 2 2")
    lines = [line_of(table_of(place), name) for name in ("max-2", "rnn")]
    distances = []
    for one, other in (lines, lines[::-1]):
        means = [line.scores["test_wer"].mean for line in (one, other)]
        error = errors_of_gain(one, other, "test_wer", None).of_all.root
        distances.append(distance_of(1 - means[0] / means[1], 0.0, error, lower_is_better=True))
    assert distances[0] == pytest.approx(distances[1])


@pytest.mark.parametrize("words", ["", "6 six", "6", "0 " * 40, "9" * 30 + " 6" * 39])
def test_without_the_words_of_utterances_seeds_alone_decide(heard: Any, words: str) -> None:
    (claim,) = heard("1 0 0 0", test_words=words)
    assert "speakers" not in claim


def test_the_utterances_of_a_speaker_are_drawn_together(heard: Any, place: Any) -> None:
    """The first ten of forty utterances have an error each; where one of four speakers said them, nobody else has."""

    def error(**known: Any) -> Errors:
        heard("1 " * 10, **known)
        first, other = (line_of(table_of(place), name) for name in ("max-2", "rnn"))
        return errors_of_gain(first, other, "test_wer", None)

    apart = error()
    assert apart.of_speakers
    together = error(corpus={"speakers": {"test": 4}})
    named = error(test_speakers=" ".join(str(utterance // 10) for utterance in range(40)))
    assert apart.of_speakers.freedom == 39
    assert together == named
    assert together.of_speakers
    assert together.of_speakers.freedom == 3
    assert together.of_speakers.value > 5 * apart.of_speakers.value
    assert error(corpus={"speakers": {"test": 3}}) == apart, "speakers with different numbers of utterances"
    assert error(corpus={"speakers": {"test": 1.25}}) == apart, "no number of speakers"
    assert error(corpus={"speakers": ["no number"]}) == apart


def test_errors_are_means_over_seeds_of_the_metric_s_own() -> None:
    words, errors = [6] * 4, [[0, 1, 2, 3], [2, 1, 0, 5]]

    def line(words: list[int] = words) -> Any:
        texts = [" ".join(map(str, each)) for each in errors]
        known = {"test_words": " ".join(map(str, words)), "test_errors": "0 0 0 9"}
        return SimpleNamespace(
            measured=[SimpleNamespace(result={**known, "test_errors_bigram": text}) for text in texts]
        )

    found = error_over_speakers("test_wer_bigram", line())
    assert found
    assert found.value == pytest.approx(bootstrap_error(np.mean(errors, axis=0), np.array(words)) ** 2)
    assert error_over_speakers("test_wer_bigram", line(), line([6, 6, 6, 7])) is None
