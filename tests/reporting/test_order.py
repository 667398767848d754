"""Whether our order of the rows is the paper's."""

from typing import Any

import pytest

from hornn.reporting.order import spearman
from reporting.place import table_of


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),
        # From SciPy 1.16: spearmanr([1, 2, 2, 4], [1, 3, 2, 4])
        ([1, 2, 2, 4], [1, 3, 2, 4], 0.9486832980505138),
        ([1, 1, 1], [1, 2, 3], None),
    ],
)
def test_rank_correlation(one: list[float], other: list[float], expected: float | None) -> None:
    found = spearman(one, other)
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_order_is_told_in_words(place: Any) -> None:
    place.commit("rnn", 1, 50.0)  # dynamic evaluation: takes no part
    place.commit("sum-2", 1, 120.0)
    place.commit("sum-3", 1, 110.0)
    (text,) = table_of(place).comparisons
    assert "The order of models is the paper's in the one pair that it separates." in text
    assert "Spearman" not in text
    place.commit("max-2", 1, 130.0)
    (text,) = table_of(place).comparisons
    assert "3 rows have both numbers (perplexity, test)." in text
    assert "of the 3 pairs that it separates, 2 stand in the same order here" in text
    assert "Spearman's rank correlation is 0.50." in text
    assert "The paper, best first: Sum, order 3; Max, order 2; Sum, order 2." in text
    assert "Ours, best first: Sum, order 3; Sum, order 2; Max, order 2." in text


def test_there_is_no_order_between_recipes(place: Any) -> None:
    noisy = {"model": {"_target_": "Hornn", "order": 2, "hidden_size": 400}, "weight_noise": 1}
    place.commit("sum-2", 1, 120.0, config=noisy)
    place.commit("sum-3", 1, 110.0)
    expected = "2 rows have both numbers (perplexity, test), but not all of ours are by one recipe."
    assert table_of(place).comparisons == [expected]
    noisy["model"]["order"] = 3
    place.commit("sum-3", 1, 110.0, config=noisy)
    assert "in the one pair that it separates" in table_of(place).comparisons[0]
