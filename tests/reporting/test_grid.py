"""The cells of a table."""

import math
import re
from typing import Any

from hornn.reporting.grid import table_grid
from hornn.reporting.notes import table_notes
from reporting.place import SWEEP, cells_of, table_of

METRIC_LABEL = '  metric_label: "perplexity, test"\n'
PUBLISHED = re.compile(" *published: .*\n")


def test_a_row_shows_mean_deviation_and_the_seed_that_validation_chooses(place: Any) -> None:
    place.commit("sum-2", 1, 100.0)
    place.commit("sum-2", 2, 104.0, valid_ppl=50.0)
    assert cells_of(table_of(place), "sum-2") == {
        "model": "Sum, order 2",
        "published": "111",
        "measured": f"102.0 ± {math.sqrt(8):.1f} (n = 2)",
        "best by validation": "104.0",
        "measured - published": "-9.0",
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
    assert "measured - published" not in cells
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
    assert "measured - published" not in cells
    assert "another corpus" in table_grid(table).legend["§"]
    assert table.compared == []


def test_times_of_different_devices_are_not_averaged(place: Any) -> None:
    place.commit("rnn", 1, 120.0)
    place.commit("rnn", 2, 120.0, device="gpu")
    place.commit("sum-2", 1, 110.0)
    assert cells_of(table_of(place), "rnn")["s/epoch"] == ""
    assert cells_of(table_of(place), "sum-2")["s/epoch"] == "12.5"


def test_columns_of_several_metrics_have_two_headings(place: Any) -> None:
    metrics = "[{key: valid_ppl, label: validation}, {key: test_ppl, label: test}]"
    text = SWEEP.replace("metric: test_ppl", f"metric: {metrics}").replace(METRIC_LABEL, "")
    place.write_sweep("toy", PUBLISHED.sub("", text))
    place.commit("sum-2", 1, 100.0)
    grid = table_grid(table_of(place))
    assert grid.heads[:3] == (("", "model"), ("validation", "measured"), ("test", "measured"))
    assert grid.header[:3] == ["model", "measured (validation)", "measured (test)"]


def test_what_holds_for_every_row_is_said_once(place: Any) -> None:
    for row in ("rnn", "sum-2", "sum-3"):
        place.commit(row, 1, 100.0, dirty=True)
    table = table_of(place)
    assert "a" in table_grid(table).legend, "of a few rows it stands beside each"
    place.commit("max-2", 1, 100.0, dirty=True)
    table = table_of(place)
    assert table_grid(table).legend.keys() == {"†", "‡"}
    assert sum("not committed" in text for text in table_notes(table)) == 1
