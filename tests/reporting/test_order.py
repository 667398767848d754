"""Whether the measured order of the rows is the paper's."""

import re
from typing import Any

import pytest

from hornn.reporting.order import spearman
from hornn.reporting.ranks import draw_ranks, places
from hornn.reporting.row_styles import row_styles
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


def test_both_orders_of_the_rows(place: Any) -> None:
    place.commit("rnn", 1, 50.0)  # dynamic evaluation: takes no part
    place.commit("sum-2", 1, 120.0)
    place.commit("sum-3", 1, 110.0)
    assert table_of(place).orders == (), "of two rows there is nothing to see"
    place.commit("max-2", 1, 130.0)
    (order,) = table_of(place).orders
    assert order.labels == ("Sum, order 2", "Sum, order 3", "Max, order 2")
    assert (order.published, order.measured) == ((111, 108, 110), (120.0, 110.0, 130.0))
    assert order.summary == ("2 of the 3 pairs of rows that the paper separates stand in the same order.")
    more = order._replace(labels=tuple("abcde"), published=(1, 2, 3, 4, 5), measured=(2, 1, 3, 4, 5))
    assert more.summary.endswith(
        "9 of the 10 pairs of rows that the paper separates stand in the same order; "
        "Spearman's rank correlation is 0.90."
    )


def test_rows_that_measure_alike_are_in_no_order(place: Any) -> None:
    """Published are 111, 108 and 110; two of the three pairs are equal here."""
    for row, score in (("sum-2", 120.0), ("sum-3", 110.0), ("max-2", 120.0)):
        place.commit(row, 1, score)
    (order,) = table_of(place).orders
    equal = order._replace(measured=(120.0, 120.0, 120.0))
    assert order.summary.startswith("2 of the 3 pairs")
    assert equal.summary.startswith("0 of the 3 pairs")


def test_rows_of_different_data_are_not_compared(place: Any) -> None:
    """Nats of one corpus against nats of another agree with the paper whatever the networks do."""
    read = {name: {"name": name, "text_checksum": name} for name in ("news", "plays")}
    for row, score, corpus in (("sum-2", 9.0, "news"), ("sum-3", 120.0, "plays"), ("max-2", 8.0, "news")):
        place.commit(row, 1, score, corpus=read[corpus])
    assert table_of(place).orders == (), "two of one corpus, one of another"
    path = place.sweeps / "toy.yaml"
    path.write_text(path.read_text().replace("      dynamic: true\n", ""))
    place.commit("rnn", 1, 10.0, corpus=read["news"])
    (order,) = table_of(place).orders
    assert order.rows == ("rnn", "sum-2", "max-2")
    assert order.summary.startswith("3 of the 3 pairs of rows that the paper separates")
    caption = draw_ranks(order, row_styles(table_of(place).lines)).caption
    assert caption.startswith("Ranks by perplexity, test, on news, the best on top")
    place.commit("rnn", 1, 10.0, corpus=read["news"] | {"text_checksum": "its characters"})
    assert table_of(place).orders == ()


def test_the_figure_of_ranks(place: Any) -> None:
    for row, score in (("sum-2", 120.0), ("sum-3", 110.0), ("max-2", 130.0)):
        place.commit(row, 1, score)
    table = table_of(place)
    (order,) = table.orders
    assert places(order, order.published, order.measured) == [2, 0, 1]
    assert places(order, order.measured, order.published) == [1, 0, 2]
    more = order._replace(metric=order.metric._replace(lower_is_better=False))
    assert places(more, order.measured, order.published) == [1, 2, 0]
    assert places(order, (1, 1, 1), ties=(3, 2, 1)) == [2, 1, 0], "equal rows do not cross"
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", draw_ranks(order, row_styles(table.lines)).svg)
    assert texts[2:6] == ["●", "●", "Sum, order 2  111", "120.0  Sum, order 2"]


def test_there_is_no_order_between_recipes_nor_of_sizes(place: Any, broken: Any) -> None:
    noisy = {"model": {"_target_": "Hornn", "order": 2, "hidden_size": 400}, "weight_noise": 1}
    place.commit("sum-2", 1, 120.0, config=noisy)
    for row in ("sum-3", "max-2"):
        place.commit(row, 1, 110.0)
    assert table_of(place).orders == ()
    place.commit("sum-2", 1, 120.0)
    assert table_of(place).orders
    broken("lower_is_better: true", "lower_is_better: null")
    assert table_of(place).orders == ()
