"""Claims with the standard errors that the seeds give."""

import math
from typing import Any

from hornn.reporting.notes import table_notes
from hornn.reporting.overview import overview_cells
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
        "18.4 % better (3 and 2 seeds). Outcome: confirmed, by the sign alone."
    )  # a deviation too few


def test_a_claim_within_three_standard_errors_is_not_decided(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 4 * step)
        place.commit("sum-2", seed, 100.0 + 4 * step)
    assert overview_cells(table_of(place))[3:] == ("", "", "", "", "4.0 %")
    for rnn, outcome in ((115.0, "undecided (under three standard errors)"), (120.0, "confirmed")):
        place.commit("rnn", 1, rnn)
        error = 0.04 * math.hypot(100 / rnn, math.sqrt(3)) / math.sqrt(3)
        distance = (1 - 100 / rnn) / error
        assert claims_of(place)[0].endswith(
            f"({distance:.1f} standard errors, 3 and 1 seeds). Outcome: {outcome}."
        )
    place.commit("rnn", 1, 115.0)
    assert overview_cells(table_of(place))[3:] == ("", "", "", "1", "4.0 %")


def test_a_claim_of_little_is_decided_by_the_distance_from_it(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + step)
        place.commit("rnn", seed, 130.0 + 1.3 * step)
    for value, margin, outcome in (
        (99.0, 0.01, "undecided (under three standard errors)"),
        (104.0, 0.06, "confirmed"),
    ):
        place.commit("sum-3", 1, value)
        distance = margin / 0.01 / math.hypot(value / 100, 1 / math.sqrt(3))
        assert claims_of(place)[0].endswith(
            f"({distance:.1f} standard errors from 2 %, 1 and 3 seeds). Outcome: {outcome}."
        )
