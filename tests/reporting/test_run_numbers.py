"""The numbers of a row whose runs stand in two tables, and their names."""

from typing import Any

import pytest

from hornn.reporting.run_data import page_data
from reporting.place import PACE, Place, cells_of, fill_two, table_of


@pytest.fixture
def two(place: Place) -> Place:
    return fill_two(place)


def rows_of(place: Place) -> dict[str, Any]:
    return page_data([table_of(place), table_of(place, "pace")], place.results / "report", {})["rows"]


def test_a_row_has_the_numbers_of_all_tables_in_which_its_runs_stand(two: Place) -> None:
    first, second = (rows_of(two)[name]["numbers"] for name in ("toy/sum-2", "pace/sum"))
    assert first == second
    assert first["test_ppl"] == (112.5, "112.5 ± 0.7")
    assert first["corpus.tokens.train"] == (900_000, "900,000"), "a count does not scatter"


def test_the_time_of_an_epoch_is_the_table_s(two: Place) -> None:
    """The median epoch of the fastest run: pauses do not count."""
    assert cells_of(table_of(two, "pace"), "sum")["measured (seconds per epoch)"] == "10.0"
    assert rows_of(two)["pace/sum"]["numbers"]["seconds_per_epoch"] == (10.0, "10.0")
    assert rows_of(two)["toy/sum-2"]["numbers"]["seconds_per_epoch"] == (10.0, "10.0")


def test_a_number_has_one_name_for_all_tables_and_each_table_its_own(two: Place) -> None:
    two.write_sweep("other", PACE.replace("name: pace", "name: other").replace("with noise", "with dropout"))
    tables = [table_of(two, name) for name in ("pace", "other", "toy")]
    data = page_data(tables, two.results / "report", {})
    assert data["measures"]["metrics.-1.train_ppl"][0] == "perplexity, training, last epoch"
    assert data["measures"]["corpus.tokens.train"][0] == "tokens"
    assert data["tables"]["pace"]["names"] == {
        "valid_ppl": "validation",
        "metrics.-1.train_ppl": "training, with noise",
    }
    assert data["tables"]["toy"]["names"] == {}
