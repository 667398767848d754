"""The table that counts weights."""

from pathlib import Path

import pytest

from hornn.parameters import published_count, render

ROOT = Path(__file__).parents[1]


def test_published_counts_carry_their_precision() -> None:
    assert published_count("8.3M") == pytest.approx((8_300_000, 100_000))
    assert published_count("540K") == pytest.approx((540_000, 1_000))


def test_its_page_shows_the_table_of_today() -> None:
    page = (ROOT / "docs" / "parameters.md").read_text()
    shown = page.partition("<!-- parameters -->")[2].partition("<!-- end -->")[0]
    assert shown.strip() == render()
    assert "| no |" not in shown
