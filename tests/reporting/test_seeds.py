"""Claims with the standard errors that the seeds give."""

import math
from typing import Any

import pytest

from hornn.reporting.notes import table_notes
from hornn.reporting.overview import overview_cells
from hornn.reporting.seeds import Errors
from reporting.place import CLAIMS, claims_of, table_of


def test_a_claim_has_its_standard_errors_from_all_seeds_of_the_table(place: Any, broken: Any) -> None:
    """Relative deviations of 0.02 and 0.04, three seeds each: pooled, a spread of sqrt(0.001) with four degrees."""
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 2 * step)
        place.commit("rnn", seed, 125.0 + 5 * step)
    error = math.sqrt(0.001) * math.hypot(0.8, 1) / math.sqrt(3)
    assert (
        f"20.0 % better ({0.2 / error:.1f} standard errors, 3 and 3 seeds). Outcome: confirmed"
        in claims_of(place)[0]
    )
    note = "Spread over seeds, perplexity, test: 3.2 % of the mean"
    assert any(text.startswith(note) for text in table_notes(table_of(place)))
    place.commit("rnn", 3, 999.0).unlink()
    assert not any("Spread" in text for text in table_notes(table_of(place)))
    assert claims_of(place)[0].endswith(
        "18.4 % better (3 and 2 seeds). Outcome: a tendency for it."
    )  # a deviation too few


def test_a_claim_within_the_standard_errors_that_decide_is_not_decided(place: Any, broken: Any) -> None:
    """At four degrees of freedom 6.6 standard errors decide."""
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 4 * step)
        place.commit("sum-2", seed, 100.0 + 4 * step)
    assert overview_cells(table_of(place))[3:] == ("", "", "", "", "4.0 %")
    for rnn, outcome in ((135.0, "undecided (under 6.6 standard errors)"), (150.0, "confirmed")):
        place.commit("rnn", 1, rnn)
        error = 0.04 * math.hypot(100 / rnn, math.sqrt(3)) / math.sqrt(3)
        distance = (1 - 100 / rnn) / error
        assert claims_of(place)[0].endswith(
            f"({distance:.1f} standard errors, 3 and 1 seeds). Outcome: {outcome}."
        )
    place.commit("rnn", 1, 135.0)
    assert overview_cells(table_of(place))[3:] == ("", "", "", "1", "4.0 %")


def test_a_claim_of_little_is_decided_by_the_distance_from_it(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + step)
        place.commit("rnn", seed, 130.0 + 1.3 * step)
    for value, margin, outcome in (
        (99.0, 0.01, "undecided (under 6.6 standard errors)"),
        (108.0, 0.1, "confirmed"),
    ):
        place.commit("sum-3", 1, value)
        distance = margin / 0.01 / math.hypot(value / 100, 1 / math.sqrt(3))
        assert claims_of(place)[0].endswith(
            f"({distance:.1f} standard errors from 2 %, 1 and 3 seeds). Outcome: {outcome}."
        )


def test_the_fewer_seeds_tell_an_error_the_more_of_it_decides() -> None:
    """The quantiles of Student's t at which three standard errors of known size stand, from tables."""
    known = {4: 6.620, 5: 5.507, 10: 3.957, 30: 3.270, 10**9: 3.0}
    for freedom, exact in known.items():
        assert Errors(0.02, None, freedom).decisive == pytest.approx(exact, rel=0.01)
    assert Errors(None, 0.02).decisive == 3.0
    # an error over utterances that is as large makes 4 degrees of freedom 16
    assert Errors(0.02, 0.02, 4).decisive == Errors(0.02, None, 16).decisive
