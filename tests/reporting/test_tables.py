"""Tables as a whole: their commits, their order, and the claims of all."""

from typing import Any

from hornn.reporting.runs import find_runs
from hornn.reporting.scoreboard import each_once, list_claims
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.tables import build_tables
from reporting.place import CLAIMS, line_of, table_of


def test_commits_and_changed_trees_are_not_mixed_silently(place: Any) -> None:
    place.commit("rnn", 1, 120.0, commit="a" * 40)
    place.commit("sum-2", 1, 110.0, commit="b" * 40, dirty=True)
    place.commit("sum-3", 1, 110.0, commit="a" * 40)
    place.commit("sum-3", 2, 110.0, commit="b" * 40)
    table = table_of(place)
    assert line_of(table, "rnn").marks == ()
    assert line_of(table, "sum-2").marks == ("from a working tree with changes that are not committed",)
    assert line_of(table, "sum-3").marks == ("its seeds come from several commits, which their files name",)
    assert table.commits == ["aaaaaaa", "bbbbbbb", "bbbbbbb+"]


def test_the_tables_that_bear_most_claims_come_first(place: Any, broken: Any) -> None:
    """Before others with results; those without any come last."""
    text = (place.sweeps / "toy.yaml").read_text()
    empty = text.replace("toy/text", "toy/speech")
    place.write_sweep("a_empty", empty.replace("name: toy", "name: a_empty"))
    place.write_sweep("b_plain", text.replace("name: toy", "name: b_plain"))
    broken("  figure:", CLAIMS + "  figure:")
    for row in ("rnn", "sum-2", "sum-3", "max-2"):
        place.commit(row, 1)
    sweeps = read_sweeps(place.sweeps)
    names = [table.sweep.name for table in build_tables(sweeps, find_runs(sweeps, place.results))]
    assert names == ["toy", "b_plain", "a_empty"]


def test_a_claim_that_two_tables_bear_is_listed_once(place: Any, broken: Any) -> None:
    """Where it is measured; where both or neither are, by the table on the paper's data."""
    broken("  figure:", CLAIMS + "  figure:")
    own = "defaults: [toy, _self_]\ntrainer: {max_epochs: 1}\nsweep: {name: twin, published_on: news}\n"
    place.write_sweep("twin", own)

    def places() -> list[str]:
        sweeps = read_sweeps(place.sweeps)
        claims = each_once(list_claims(build_tables(sweeps, find_runs(sweeps, place.results))))
        return [claim.table.sweep.name for claim in claims]

    assert places() == ["toy", "toy", "toy"]
    for row in ("sum-3", "max-2"):
        place.commit(row, 1, sweep="twin")
    assert sorted(places()) == ["toy", "toy", "twin"], "two of the claims still wait for their rows"
    for row in ("sum-3", "max-2"):
        place.commit(row, 1)
    assert places() == ["toy", "toy", "toy"]
