"""Whether variances are alike, and what each counts where they are not."""

import math

import numpy as np
import pytest

from hornn.reporting.variances import (
    Variance,
    are_alike,
    digamma,
    inverse_trigamma,
    pooled,
    prior_of,
    student,
    total,
    trigamma,
)


def drawn(prior: float, rows: int, freedom: int, seed: int = 0) -> list[Variance]:
    """Variances of rows whose true ones follow a prior of so many degrees of freedom around 4."""
    rng = np.random.default_rng(seed)
    true = 4.0 * (prior / rng.chisquare(prior, rows) if prior < math.inf else np.ones(rows))
    return [Variance(value, freedom) for value in true * rng.chisquare(freedom, rows) / freedom]


def test_the_polygamma_functions_have_their_known_values() -> None:
    euler = 0.5772156649015329
    assert digamma(1) == pytest.approx(-euler, abs=1e-9)
    assert digamma(0.5) == pytest.approx(-euler - 2 * math.log(2), abs=1e-9)
    assert trigamma(1) == pytest.approx(math.pi**2 / 6, abs=1e-9)
    assert trigamma(0.5) == pytest.approx(math.pi**2 / 2, abs=1e-9)
    for x in (0.1, 1.0, 30.0):
        assert inverse_trigamma(trigamma(x)) == pytest.approx(x, rel=1e-6)


def test_students_t_has_its_known_quantiles() -> None:
    """At the probability of three standard deviations; with one degree of freedom it is Cauchy's distribution."""
    rare = math.erfc(3 / math.sqrt(2)) / 2
    assert student(3.0, 1) == pytest.approx(1 / math.tan(math.pi * rare), rel=1e-3)
    assert student(3.0, 2) == pytest.approx(19.207, rel=1e-3)
    assert student(3.0, math.inf) == 3.0


def test_equal_variances_are_alike_and_chance_seldom_says_otherwise() -> None:
    found = [are_alike(drawn(math.inf, 12, 2, seed)) for seed in range(400)]
    assert 0 <= found.count(False) <= 12, "4 are expected"
    assert not are_alike(drawn(2, 30, 4))
    assert are_alike([Variance(1.0, 4)])
    assert are_alike([Variance(0.0, 4), Variance(0.0, 4)])


def test_the_prior_is_found_again() -> None:
    prior = prior_of(drawn(6, 4000, 4))
    assert prior.freedom == pytest.approx(6, rel=0.15)
    assert prior.value == pytest.approx(4, rel=0.05)
    alike = prior_of([Variance(2.0, 4)] * 5)
    assert alike.freedom == math.inf
    assert alike.moderate(Variance(9.0, 4)) == Variance(2.0)


def test_a_row_counts_as_much_as_its_own_seeds_tell() -> None:
    prior = prior_of(drawn(6, 4000, 4))
    assert prior.moderate(Variance(0.0, 0)) == pytest.approx((prior.value, prior.freedom))
    own = prior.moderate(Variance(40.0, 4))
    assert own.freedom == prior.freedom + 4
    assert own.value == pytest.approx((prior.freedom * prior.value + 160) / own.freedom)
    assert math.isfinite(prior_of([Variance(0.0, 2), Variance(1e-4, 2), Variance(1.0, 2)]).freedom), (
        "alike by chance"
    )


def test_parts_add_up() -> None:
    assert total([Variance(1.0, 4), Variance(1.0, 4)]) == Variance(2.0, 8)
    assert total([Variance(1.0, 4), Variance(0.0, 1)]) == Variance(1.0, 4)
    assert total([]) == Variance(0.0)
    assert pooled([Variance(1.0, 2), Variance(4.0, 4)]) == Variance(3.0, 6)
