"""The table that counts weights."""

from pathlib import Path

import pytest

from hornn.parameters import MARKS, published_count, render

ROOT = Path(__file__).parents[1]


def test_published_counts_carry_their_precision() -> None:
    assert published_count("8.3M") == pytest.approx((8_300_000, 100_000))
    assert published_count("540K") == pytest.approx((540_000, 1_000))


def test_the_readme_shows_the_table_of_today() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = readme.partition(f"<!-- {MARKS}: begin -->")[2].partition(f"<!-- {MARKS}: end -->")[0]
    assert shown.strip() == render()
    assert "| no |" not in shown
