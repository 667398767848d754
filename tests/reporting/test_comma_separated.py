"""A table as CSV."""

import csv
import io
from typing import Any

import pytest

from hornn.reporting.comma_separated import as_cell, table_csv
from reporting.place import table_of


def test_csv_holds_7_digits(place: Any) -> None:
    place.commit("sum-2", 1, 100.123456789)
    place.commit("sum-2", 2, 101.0)
    rows = {row["row"]: row for row in csv.DictReader(io.StringIO(table_csv(table_of(place))))}
    assert float(rows["sum-2"]["mean"]) == 100.5617  # of 100.5617283945
    assert rows["sum-2"]["seeds"] == "2"
    assert rows["sum-3"]["verified"] == "False"
    assert rows["stack"]["status"] == "not built"
    assert len(rows) == 5


def test_no_text_of_a_result_is_a_formula(place: Any) -> None:
    place.commit("sum-2", 1, 100.0, device='=HYPERLINK("x")', commit='=HYPERLINK("x")')
    rows = {row["row"]: row for row in csv.DictReader(io.StringIO(table_csv(table_of(place))))}
    assert rows["sum-2"]["device"] == '\'=HYPERLINK("x")'
    assert rows["sum-2"]["commits"] == "'=HYPERL"


@pytest.mark.parametrize("text", ["-1+2", "@x", "+x", " =x"])
def test_no_text_is_a_formula(text: str) -> None:
    assert as_cell(text) == f"'{text.strip()}"
