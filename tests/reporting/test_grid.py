"""The cells of a table."""

import math
from typing import Any

from hornn.reporting.grid import table_grid
from reporting.place import cells_of, table_of


def test_a_row_shows_mean_deviation_and_the_seed_that_validation_chooses(place: Any) -> None:
    place.commit("sum-2", 1, 100.0)
    place.commit("sum-2", 2, 104.0, valid_ppl=50.0)
    assert cells_of(table_of(place), "sum-2") == {
        "model": "Sum, order 2",
        "published": "111",
        "measured": f"102.0 ± {math.sqrt(8):.1f} (n = 2)",
        "best by validation": "104.0",
        "difference": "-9.0",
        "weights": "8,640,000",
        "s/epoch": "12.5",
        "runs": "",
    }


def test_one_seed_is_not_chosen_from(place: Any) -> None:
    place.commit("sum-2", 1, 100.0)
    assert "best by validation" not in cells_of(table_of(place), "sum-2")


def test_a_table_in_units_of_one_of_its_rows(place: Any, broken: Any) -> None:
    broken("  lower_is_better", "  relative_to: sum-2\n  lower_is_better")
    place.commit("sum-2", 1, 100.0)
    place.commit("sum-3", 1, 80.0)
    cells = cells_of(table_of(place), "sum-3")
    assert "difference" not in cells
    assert (cells["published / Sum, order 2"], cells["measured / Sum, order 2"]) == ("0.97", "0.80")
    assert cells_of(table_of(place), "max-2")["measured / Sum, order 2"] == ""


def test_published_numbers_are_marked(place: Any) -> None:
    table = table_of(place)
    assert cells_of(table, "rnn")["published"] == "123‡"
    assert cells_of(table, "sum-3")["published"] == "108†"
    assert table_grid(table).legend.keys() == {"†", "‡"}


def test_numbers_of_another_corpus_are_marked_and_not_subtracted(place: Any, broken: Any) -> None:
    broken("  lower_is_better", "  published_on: news\n  lower_is_better")
    place.commit("sum-2", 1, 100.0)
    table = table_of(place)
    cells = cells_of(table, "sum-2")
    assert (cells["published"], cells["measured"]) == ("111§", "100.0")
    assert "difference" not in cells
    assert "another corpus" in table_grid(table).legend["§"]
    assert table.compared == []


def test_times_of_different_devices_are_not_averaged(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 120.0, device="gpu")
    place.commit("sum-2", 1, 110.0)
    assert cells_of(table_of(place), "rnn")["s/epoch"] == ""
    assert cells_of(table_of(place), "sum-2")["s/epoch"] == "12.5"
