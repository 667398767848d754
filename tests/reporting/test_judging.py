"""Claims that the seeds decide: on other data, of little, against a bound; and what few rows tell of the scatter."""

import math
import re
from typing import Any

import pytest

from hornn.reporting.scores import Score
from hornn.reporting.seeds import Spread
from hornn.reporting.variances import Variance, prior_of
from reporting.place import CLAIMS, claims_of, table_of


def test_a_decided_gain_on_another_corpus_need_not_be_as_large(place: Any, broken: Any) -> None:
    """By three seeds each, so that 0.8 % are confirmed; published are 1.8 %."""
    broken("  figure:", "  published_on: news\n" + CLAIMS + "  figure:")
    for seed, off in ((1, -0.1), (2, 0.0), (3, 0.1)):
        for name, value in (("sum-2", 130.0), ("max-2", 120.0), ("sum-3", 119.0)):
            place.commit(name, seed, value + off)
    assert claims_of(place)[0].endswith("Outcome: confirmed.")


def test_the_mean_over_seeds_says_which_of_several_rows_is_judged(place: Any, broken: Any) -> None:
    """The row of the lucky seed has the worse mean on validation."""
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    for row, scores in (("sum-2", (104.0, 130.0, 140.0)), ("max-2", (125.0, 120.0, 122.0))):
        for seed, valid in enumerate(scores[1:], start=1):
            place.commit(
                row, seed, scores[0], valid_ppl=valid if row == "max-2" else valid + 10 * (-1) ** seed
            )
    assert "Measured: Sum, order 3: 100; Max, order 2: 125; 20.0 % better" in claims_of(place)[0]


def test_a_shortfall_is_told_where_more_is_better_too(place: Any, broken: Any) -> None:
    """Published are 108 and 110."""
    path = broken("  figure:", CLAIMS + "  figure:")
    path.write_text(path.read_text().replace("lower_is_better: true", "lower_is_better: false"))
    for row, score in (("sum-3", 90.0), ("max-2", 125.0), ("sum-2", 125.0)):
        place.commit(row, 1, score)
    told = claims_of(place)[0]
    assert "Sum, order 3 itself is 17 % worse than published" in told
    assert "Max, order 2 itself" not in told


def test_dynamic_evaluation_is_told_by_the_mean_over_seeds(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("max-2", 1, 125.0)
    for seed, score in ((1, 110.0), (2, 114.0)):
        place.commit("rnn", seed, 120.0, dynamic={"test_ppl": score})
    assert "RNN by dynamic evaluation, as published: 112)" in claims_of(place)[-1]


def test_a_claim_of_little_that_the_published_numbers_contradict_says_so(place: Any, broken: Any) -> None:
    """Published are 1.8 % more, where at most 1 % is claimed."""
    broken("  figure:", CLAIMS.replace("at_most: 2", "at_most: 1") + "  figure:")
    for name in ("sum-3", "max-2"):
        place.commit(name, 1, 100.0)
    assert claims_of(place)[0].endswith("Outcome: a tendency for it (against the published numbers).")


def test_the_gain_on_a_bound_has_its_error_in_parts_of_the_bound(place: Any, broken: Any) -> None:
    broken("  figure:", '  claims: [{says: "at most 200", better: sum-2, at_most: 200}]\n  figure:')
    for seed, off in ((1, -1.0), (2, 0.0), (3, 1.0)):
        for name in ("sum-2", "sum-3"):
            place.commit(name, seed, 100.0 + off)
    (verdict,) = table_of(place).verdicts
    assert (verdict.outcome, verdict.gain) == ("confirmed", 0.5)
    assert verdict.error == pytest.approx(1 / math.sqrt(3) / 200)


def test_numbers_of_weights_are_counted_and_so_decided_by_one_seed(place: Any, broken: Any) -> None:
    """Where lower scores are better, fewer weights are neither: 20 % fewer, where 10 % at least are claimed."""
    path = broken(
        '  metric: test_ppl\n  metric_label: "perplexity, test"\n',
        "  metric: [{key: test_ppl, label: perplexity}, {key: num_parameters, label: weights}]\n",
    )
    path.write_text(re.sub(r"\n +published: .*", "", path.read_text()))
    claim = "{says: %s, better: sum-2, than: sum-3, metric: num_parameters, at_most: %d}"
    claims = ", ".join(claim % each for each in (("less", -10), ("half", -50)))
    claims += ", {says: small, better: sum-2, metric: num_parameters, at_most: 9000000}"
    path.write_text(f"{path.read_text()}  claims: [{claims}]\n")
    for name, weights in (("sum-2", 8_000_000), ("sum-3", 10_000_000)):
        place.commit(name, 1, num_parameters=weights)
    less, half, small = table_of(place).verdicts
    assert str(less) == (
        "Claim: less. Measured: Sum, order 2: 8,000,000; Sum, order 3: 10,000,000; 20.0 % less (counted). "
        "Outcome: confirmed."
    )
    assert (half.outcome, half.error) == ("not confirmed", None)
    assert small.measured == "Sum, order 2: 8,000,000, where at most 9,000,000 is claimed (counted)"
    assert (small.outcome, small.error) == ("confirmed", None)


def test_a_claim_that_the_published_numbers_contradict_is_ours_unless_the_paper_says_it(
    place: Any, broken: Any
) -> None:
    """Published are 111 and 108."""
    worse = "better: sum-2, than: sum-3"
    claims = f'[{{says: ours, {worse}}}, {{says: theirs, {worse}, where: "section 5"}}]'
    broken("  figure:", f"  claims: {claims}\n  figure:")
    assert [verdict.of_paper for verdict in table_of(place).verdicts] == [False, True]


def test_a_row_of_little_scatter_counts_as_it_is() -> None:
    one, other = (prior_of(tuple(Variance(v, 4) for v in (least, 1.0, 1.0, 1.0))) for least in (1e-3, 1e-4))
    assert other.freedom(Variance(1.0, 4)) < one.freedom(Variance(1.0, 4))


def test_a_moderated_error_is_known_no_better_than_the_pooled_one() -> None:
    prior = prior_of((Variance(0.0025, 1),) * 30)
    assert Spread(0.05, 5, prior).of(Score(None, (1.0, 1.1), None)).freedom == 5
