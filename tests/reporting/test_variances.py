"""How far the variances of rows tell each other, and what they decide."""

import math
from itertools import pairwise

import numpy as np
import pytest

from hornn.reporting.variances import (
    FREEDOMS,
    OUTLIER,
    OUTLYING,
    Variance,
    log_likelihood,
    pooled,
    prior_of,
    student,
    total,
)


def drawn(prior: float, rows: int, freedom: int, seed: int = 0) -> tuple[Variance, ...]:
    """Variances of rows whose true ones follow a prior of so many degrees of freedom around 4."""
    rng = np.random.default_rng(seed)
    true = 4.0 * (prior / rng.chisquare(prior, rows) if prior < math.inf else np.ones(rows))
    return tuple(Variance(value, freedom) for value in true * rng.chisquare(freedom, rows) / freedom)


def test_students_t_has_its_known_quantiles() -> None:
    """At the probability of three standard deviations; with one degree of freedom it is Cauchy's distribution."""
    rare = math.erfc(3 / math.sqrt(2)) / 2
    assert student(3.0, 1) == pytest.approx(1 / math.tan(math.pi * rare), rel=1e-3)
    assert student(3.0, 2) == pytest.approx(19.207, rel=1e-3)
    assert student(3.0, 100) == pytest.approx(3.0768, abs=2e-4)
    assert student(3.0, 1000) == pytest.approx(3.0075, abs=2e-4)
    assert student(3.0, math.inf) == 3.0


def test_the_likelihood_is_the_one_of_the_f_distribution() -> None:
    """Its density with 2 and 2 degrees of freedom is 1 / (1 + x)^2; the logarithms differ by a constant."""
    low, high = (log_likelihood(Variance(value, 2), Variance(4.0, 2.0)) for value in (2.0, 12.0))
    assert low - high == pytest.approx(2 * math.log((1 + 3.0) / (1 + 0.5)))
    ratios = np.random.default_rng(0).f(3, 7, 200_000)
    near, far = (log_likelihood(Variance(value, 3), Variance(1.0, 7.0)) for value in (1.0, 4.0))
    share = np.mean(abs(ratios - 4) < 0.1) / np.mean(abs(ratios - 1) < 0.1)
    assert math.exp(far - near) * 4.0**0.5 == pytest.approx(share, rel=0.05), (
        "the constant holds x^(d / 2 - 1)"
    )


@pytest.mark.parametrize("freedom", [2, 6, 30])
def test_the_prior_is_found_again(freedom: float) -> None:
    """Of a row whose own variance is an ordinary one."""
    prior = prior_of(drawn(freedom, 1000, 4))
    assert prior.freedom(Variance(4.0, 4)) == pytest.approx(freedom, rel=0.35), "between two of FREEDOMS"
    assert prior.value == pytest.approx(4, rel=0.1)


def test_rows_that_are_alike_count_nearly_as_one() -> None:
    """The value is the pooled one where a row's own variance says nothing of its own."""
    parts = drawn(math.inf, 200, 4)
    prior = prior_of(parts)
    assert FREEDOMS[-3] < prior.freedom(Variance(4.0, 4000)) < FREEDOMS[-1]
    assert prior.value == pytest.approx(pooled(parts).value, rel=0.03)
    few = [prior_of(drawn(math.inf, 12, 2, seed)).freedom() for seed in range(200)]
    assert np.median(few) > 8, "in rows of three seeds"
    assert 3 < prior_of((Variance(2.0, 1),)).freedom() < 6, (
        "where nothing tells it, every one of FREEDOMS counts"
    )


def test_of_a_row_without_a_variance_it_is_not_known_whether_it_is_an_outlier() -> None:
    """However alike the others are: one row in twenty has a single degree of freedom."""
    assert prior_of(drawn(math.inf, 1000, 4)).freedom() == pytest.approx(1 / OUTLYING, rel=0.15)


def test_a_prior_is_a_mean_over_all_degrees_of_freedom() -> None:
    """By the definition, with the likelihood of the mixture and its best value found on a grid."""
    parts = tuple(Variance(value, 2) for value in (0.5, 1.0, 9.0))
    values = np.exp(np.linspace(math.log(0.5), math.log(9.0), 4001))
    best = []
    for freedom in FREEDOMS:
        logs = np.zeros(len(values))
        for part in parts:
            of_both = [
                np.exp([log_likelihood(part, Variance(value, each)) for value in values])
                for each in (freedom, OUTLIER)
            ]
            logs += np.log((1 - OUTLYING) * of_both[0] + OUTLYING * of_both[1])
        best.append((max(logs), float(values[int(np.argmax(logs))])))
    weights = np.exp(np.array([log for log, _ in best]) - max(log for log, _ in best))
    prior = prior_of(parts)
    assert prior.value == pytest.approx(np.average([value for _, value in best], weights=weights), rel=1e-2)
    of_row = (1 - OUTLYING) / np.array(FREEDOMS) + OUTLYING / OUTLIER
    assert prior.freedom() == pytest.approx(weights.sum() / (weights * of_row).sum(), rel=1e-2)


def test_one_row_more_switches_no_rule() -> None:
    """As one variance grows from what chance explains to what it does not, its row is told less, without a jump."""
    others = drawn(math.inf, 12, 2)
    grown = [Variance(4.0 * 1.2**step, 2) for step in range(40)]
    found = [prior_of((*others, own)).freedom(own) for own in grown]
    assert found[0] > 4 * found[-1]
    assert all(before / after < 1.25 for before, after in pairwise(found))


def test_an_outlying_row_is_left_to_itself() -> None:
    """It neither widens the errors of the others nor has errors as small as theirs."""
    others = drawn(math.inf, 24, 2)
    outlier = Variance(4.0 * 400, 2)
    alone, together = prior_of(others), prior_of((*others, outlier))
    assert together.value == pytest.approx(alone.value, rel=0.2)
    assert together.freedom(others[0]) > 0.7 * alone.freedom(others[0])
    assert together.freedom(outlier) == pytest.approx(OUTLIER, rel=0.1)
    assert together.is_outlier(outlier)
    assert not any(map(together.is_outlier, [*others, Variance(0.0, 0)]))
    assert together.moderate(outlier).value > 1000


def test_a_row_counts_as_much_as_its_own_seeds_tell() -> None:
    prior = prior_of(drawn(6, 400, 4))
    assert prior.moderate(Variance(0.0, 0)) == pytest.approx((prior.value, prior.freedom()))
    own = Variance(40.0, 4)
    known = prior.freedom(own)
    assert prior.moderate(own).freedom == pytest.approx(known + 4)
    assert prior.moderate(own).value == pytest.approx((known * prior.value + 160) / (known + 4))


def test_seeds_that_agree_to_the_last_digit_have_a_prior() -> None:
    for values in ((0.0, 1e-4, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0, 1.0)):
        prior = prior_of(tuple(Variance(value, 2) for value in values))
        assert 0 < prior.value < 1
        assert 1 <= prior.freedom() < 4


def test_parts_add_up() -> None:
    assert total([Variance(1.0, 4), Variance(1.0, 4)]) == Variance(2.0, 8)
    assert total([Variance(1.0, 4), Variance(0.0, 1)]) == Variance(1.0, 4)
    assert total([]) == Variance(0.0)
    assert total([Variance(1e250, 4), Variance(1e-250, 4)]) == Variance(1e250, 4), (
        "of a result that is nonsense"
    )
    assert pooled([Variance(1.0, 2), Variance(4.0, 4)]) == Variance(3.0, 6)
