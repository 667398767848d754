"""The line of a table in the table of tables."""

from typing import Any

import pytest

from hornn.reporting.glance import strips_by_paper
from hornn.reporting.overview import overview_cells
from reporting.place import CLAIMS, table_of


def test_a_table_has_its_line_in_the_overview(place: Any, broken: Any) -> None:
    """Measured against published: without the row by dynamic evaluation, marked while a number is not verified."""
    assert overview_cells(table_of(place)) == ("Toy: order and pooling", "0 of 4", *[""] * 7)
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("rnn", 1, 200.0)
    place.commit("max-2", 1, 121.0)
    assert overview_cells(table_of(place))[1:3] == ("2 of 4", "+10.0 %")
    place.commit("sum-2", 1, 110.99)
    place.commit("sum-3", 1, 113.4)
    assert overview_cells(table_of(place))[1:] == (
        "4 of 4",
        "+5.0 % (+0.0 % to +10.0 %)†",
        "",
        "",
        "",
        "",
        "1 for, 2 against",
        "",
    )


@pytest.mark.parametrize("time", ["seconds_per_epoch", "wall_seconds", "tokens_per_second"])
def test_a_time_of_another_machine_is_not_compared(place: Any, broken: Any, time: str) -> None:
    broken("metric: test_ppl", f"metric: {time}")
    place.commit("sum-2", 1)
    assert overview_cells(table_of(place))[1:3] == ("1 of 4", "")


def test_a_table_without_claims_has_its_spread(place: Any) -> None:
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 4 * step)
        assert overview_cells(table_of(place))[-1] == ""
        place.commit("sum-2", seed, 100.0 + 4 * step)
    assert overview_cells(table_of(place))[-1] == "4.0 %"


def test_a_number_that_rounds_to_the_published_one_is_not_better(place: Any) -> None:
    place.commit("sum-2", 1, 110.7)  # published: 111
    place.commit("max-2", 1, 109.4)  # published: 110
    ((strip,),) = strips_by_paper([table_of(place)]).values()
    assert {row.name: row.better for row in strip.rows} == {"sum-2": False, "max-2": True}
