"""What a result file says of a metric."""

import re
from typing import Any

import pytest

from hornn.reporting.scores import metric_value
from reporting.place import line_of, table_of


def test_a_metric_may_lie_inside_of_the_result(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("metric: test_ppl", "metric: metrics.-1.valid_ppl")
    place.write_sweep("toy", text)
    place.commit("rnn", 1, 100.0)
    place.commit("sum-2", 1, 100.0, metrics=[])
    key = "metrics.-1.valid_ppl"
    assert line_of(table_of(place), "rnn").scores[key].values == pytest.approx((100 + 20 / 3,))
    assert line_of(table_of(place), "sum-2").scores[key].values == ()


@pytest.mark.parametrize(
    ("epoch", "value"), [("0", 120.0), ("2", 100 + 20 / 3), ("3", None), ("-2", None), ("x", None)]
)
def test_a_metric_may_be_that_of_an_epoch(epoch: str, value: float | None) -> None:
    result = {"metrics": [{"valid_ppl": 120.0}, {"valid_ppl": 110.0}, {"valid_ppl": 100 + 20 / 3}]}
    assert metric_value(result, f"metrics.{epoch}.valid_ppl") == value


def test_a_claim_says_that_its_results_hold_no_such_number(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("metric: test_ppl", "metric: tset_ppl")
    claims = '  claims:\n    - {says: "two gain", better: sum-2, than: rnn}\n'
    place.write_sweep("toy", text.replace("  figure:", f"{claims}  figure:"))
    place.commit("rnn", 1, 120.0)
    place.commit("sum-2", 1, 100.0)
    (verdict,) = table_of(place).verdicts
    assert str(verdict).endswith("Outcome: not measured yet (results hold no tset_ppl).")


def test_bits_are_those_of_characters_alone(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text().replace("test_ppl", "test_bpc")
    place.write_sweep("toy", text)
    place.commit("rnn", 1, 2.0, corpus={"unit": "char"})
    place.commit("sum-2", 1, 2.0, corpus={"unit": "word"})
    table = table_of(place)
    assert line_of(table, "rnn").scores["test_bpc"].values == pytest.approx((1.0,))
    assert line_of(table, "sum-2").scores["test_bpc"].values == ()
    assert line_of(table, "sum-2").marks == ("1 of its 1 results hold no test_bpc",)


def test_characters_have_bits_and_words_perplexity_where_a_table_has_both(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    both = "metric: [{key: test_bpc, label: bits}, {key: test_ppl, label: perplexity}]"
    text = re.sub(r"metric: test_ppl\n.*\n", f"{both}\n", text)
    place.write_sweep("toy", re.sub(r"      published: .*\n", "", text))
    place.commit("rnn", 1, 2.0, corpus={"unit": "char"})
    place.commit("sum-2", 1, 100.0, corpus={"unit": "word"})
    rnn, words = (line_of(table_of(place), row) for row in ("rnn", "sum-2"))
    assert {key: score.values for key, score in rnn.scores.items()} == {"test_bpc": pytest.approx((1.0,))}
    assert {key: score.values for key, score in words.scores.items()} == {"test_ppl": (100.0,)}
    assert rnn.marks == words.marks == ()
