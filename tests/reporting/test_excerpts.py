"""Excerpts of tables and claims in pages."""

import re
from typing import Any

import pytest

from hornn.reporting.excerpts import claims_excerpt, metric_of, rows_excerpt
from reporting.place import CLAIMS, SWEEP, table_of


def test_gains_of_an_excerpt_are_on_its_first_row(place: Any) -> None:
    for row, score in (("rnn", 120.0), ("sum-2", 90.0)):
        place.commit(row, 1, score)
    table = table_of(place)
    text = rows_excerpt(["toy", "rnn", "sum-2"], [table], {"toy": place.folder / "toy.md"}, place.folder)
    (line,) = [line for line in text.splitlines() if line.startswith("| Sum, order 2")]
    assert "+9.8 %" in line  # published, 123 to 111
    assert "+25.0 %" in line


def test_rows_on_different_data_have_no_gain_and_errors_of_their_own(place: Any) -> None:
    """Rows on B scatter ten times as far as rows on A."""
    for row, name, step in (("rnn", "A", 0.1), ("max-2", "A", 0.1), ("sum-2", "B", 1.0), ("sum-3", "B", 1.0)):
        for seed in (1, 2, 3, 4):
            corpus = {"name": name, "text_checksum": name}
            place.commit(row, seed, 100.0 + step * (seed - 2.5), corpus=corpus)
    table = table_of(place)

    def excerpt(*rows: str) -> list[str]:
        text = rows_excerpt(["toy", *rows], [table], {"toy": place.folder / "toy.md"}, place.folder)
        return [line for line in text.splitlines() if line.startswith("| ")]

    alone, mixed = excerpt("rnn", "max-2"), excerpt("rnn", "sum-2")
    assert mixed[1].split("|")[1:4] == alone[1].split("|")[1:4], "network, published and measured"
    assert "%" not in mixed[2], "neither published nor measured"


def test_claims_are_of_a_sweep_or_of_those_with_its_prefix_and_say_what_is_asked(place: Any) -> None:
    text = SWEEP.replace("  figure:", CLAIMS + "  figure:")
    tables = []
    for name in ("toy", "toy_a", "toys"):
        place.write_sweep(name, text.replace("name: toy", f"name: {name}"))
        tables.append(table_of(place, name))
    home = {name: place.folder / f"{name}.md" for name in ("toy", "toy_a", "toys")}
    found = claims_excerpt(["toy"], tables, home, place.folder)
    assert "toy_a.md" in found
    assert "toys.md" not in found
    assert "max beats the RNN" in found
    some = claims_excerpt(["toy", "says=three_beat"], tables, home, place.folder)
    assert "three beat two" in some
    assert "max beats the RNN" not in some
    with pytest.raises(ValueError, match="no claim of toy, toy_a says 'four beat'"):
        claims_excerpt(["toy", "says=four_beat"], tables, home, place.folder)


def test_an_excerpt_is_of_the_test_score_where_there_is_one(place: Any, broken: Any) -> None:
    path = broken(
        'metric: test_ppl\n  metric_label: "perplexity, test"',
        "metric: [{key: valid_ppl, label: valid}, {key: test_ppl, label: test}]",
    )
    path.write_text(re.sub(r"\n +published: .*", "", path.read_text()))
    sweep = table_of(place).sweep
    assert metric_of(sweep, []).key == "test_ppl"
    assert metric_of(sweep, ["valid_ppl"]).key == "valid_ppl"
