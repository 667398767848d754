"""Claims with the standard errors that the seeds give."""

import math
from typing import Any

import numpy as np
import pytest

from hornn.recipe import COUNTED, load
from hornn.reporting.lines import Line
from hornn.reporting.notes import table_notes
from hornn.reporting.numbers import percent
from hornn.reporting.overview import overview_cells
from hornn.reporting.runs import Run
from hornn.reporting.scores import Score
from hornn.reporting.seeds import (
    UNSEEDED,
    Errors,
    Spread,
    errors_of_gain,
    errors_of_mean,
    spread_for,
    spread_over_seeds,
)
from hornn.reporting.variances import Prior, Variance
from reporting.place import CLAIMS, claims_of, line_of, table_of
from reporting.shipped import ROOT


def test_a_claim_has_its_standard_errors_from_all_seeds_of_the_table(place: Any, broken: Any) -> None:
    """Relative deviations of 0.03, three seeds each: so large is the pooled one, with four degrees of freedom."""
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 3 * step)
        place.commit("rnn", seed, 125.0 + 3.75 * step)
    error = 0.03 * math.sqrt(2 / 3)
    assert (
        f"20.0 % better ({-math.log(0.8) / error:.1f} standard errors, 3 and 3 seeds). Outcome: confirmed"
        in claims_of(place)[0]
    )
    note = "Spread over seeds, perplexity, test: 3.0 % of the mean"
    assert any(text.startswith(note) for text in table_notes(table_of(place)))
    place.commit("rnn", 3, 999.0).unlink()
    assert not any("Spread" in text for text in table_notes(table_of(place)))
    # A deviation too few.
    assert claims_of(place)[0].endswith("18.8 % better (3 and 2 seeds). Outcome: a tendency for it.")


def test_a_claim_within_the_standard_errors_that_decide_is_not_decided(place: Any, broken: Any) -> None:
    """At four degrees of freedom 6.6 standard errors decide."""
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + 4 * step)
        place.commit("sum-2", seed, 100.0 + 4 * step)
    assert overview_cells(table_of(place))[3:] == ("", "", "", "", "", "4.0 %")
    for rnn, outcome in ((135.0, "undecided (under 6.6 standard errors)"), (150.0, "confirmed")):
        place.commit("rnn", 1, rnn)
        error = 0.04 * math.sqrt(1 / 3 + 1)
        distance = math.log(rnn / 100) / error
        assert claims_of(place)[0].endswith(
            f"({distance:.1f} standard errors, 3 and 1 seeds). Outcome: {outcome}."
        )
    place.commit("rnn", 1, 135.0)
    assert overview_cells(table_of(place))[3:] == ("", "", "", "1", "", "4.0 %")


def test_a_claim_of_little_is_decided_by_the_distance_from_it(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    for seed, step in ((1, -1), (2, 0), (3, 1)):
        place.commit("max-2", seed, 100.0 + step)
        place.commit("rnn", seed, 130.0 + 1.3 * step)
    for value, outcome in (
        (99.0, "undecided (under 6.6 standard errors)"),
        (108.0, "confirmed (it is even behind)"),
    ):
        place.commit("sum-3", 1, value)
        distance = abs(math.log(value / 98)) / 0.01 / math.sqrt(1 + 1 / 3)
        assert claims_of(place)[0].endswith(
            f"({distance:.1f} standard errors from 2 %, 1 and 3 seeds). Outcome: {outcome}."
        )


def test_the_fewer_seeds_tell_an_error_the_more_of_it_decides() -> None:
    known = {4: 6.620, 5: 5.507, 10: 3.957, 30: 3.270, math.inf: 3.0}
    for freedom, exact in known.items():
        assert Errors(Variance(0.02, freedom)).decisive == pytest.approx(exact, abs=1e-3)
    # another part of known size that is as large makes 4 degrees of freedom 16
    assert Errors(Variance(0.02, 4), Variance(0.02)).decisive == Errors(Variance(0.02, 16)).decisive
    assert Errors(None, Variance(0.02, 9)).total is None


def test_a_row_whose_seeds_scatter_has_an_error_of_its_own(place: Any) -> None:
    """Ten seeds of each row: of one they are a hundred times as far apart."""
    path = place.sweeps / "toy.yaml"
    path.write_text(path.read_text().replace("seeds: [1, 2]", f"seeds: {list(range(1, 11))}", 1))
    for seed in range(1, 11):
        for row, step in (("rnn", 1.0), ("max-2", 0.01), ("sum-2", 0.01), ("sum-3", 0.01)):
            place.commit(row, seed, 100.0 + step * (seed % 5 - 2))
    table = table_of(place)
    lines = {line.row.name: line for line in table.lines}
    spread = spread_over_seeds("test_ppl", lines.values())
    assert spread
    assert spread.prior
    (note,) = (text for text in table_notes(table) if text.startswith("Spread over seeds"))
    assert spread.decisive_alone == Errors(spread.of(Score(None, (1.0,), None))).decisive
    assert f"which counts as {spread.prior.freedom():.1f} degrees of freedom" in note
    assert "Seeds that scatter for reasons of their own, perplexity, test: RNN." in table_notes(table)
    scattered, other = (errors_of_mean(lines[name], "test_ppl", spread) for name in ("rnn", "max-2"))
    assert scattered.total == pytest.approx(math.sqrt(20 / 9 / 10), rel=0.2)
    assert other.total < scattered.total / 5
    assert other.decisive > 3.2


def test_another_corpus_tells_nothing_of_the_errors_on_this_one(place: Any) -> None:
    """Rows on B scatter ten times as far; with too few seeds of its own, B takes what all rows tell."""
    path = place.sweeps / "toy.yaml"
    path.write_text(path.read_text().replace("seeds: [1, 2]", f"seeds: {list(range(1, 7))}", 1))
    data = {"rnn": "A", "max-2": "A", "sum-2": "B", "sum-3": "B"}
    steps = {"A": 0.1, "B": 1.0}

    def spreads(seeds_of_b: int) -> dict[str, Any]:
        for row, name in data.items():
            for seed in range(1, 7 if name == "A" else 1 + seeds_of_b):
                corpus = {"name": name, "text_checksum": name}
                place.commit(row, seed, 100.0 + steps[name] * (-1) ** seed, corpus=corpus)
        lines = table_of(place).lines
        of = {line.row.name: spread_for([line], "test_ppl", lines) for line in lines}
        assert of["rnn"] == of["max-2"]
        return {"A": of["rnn"], "B": of["sum-2"], "all": spread_over_seeds("test_ppl", lines)}

    def said() -> str:
        return "\n".join(
            text for text in table_notes(table_of(place)) if text.startswith("Spread over seeds")
        )

    few = spreads(2)
    assert few["A"].share == pytest.approx(0.001 * math.sqrt(6 / 5), rel=1e-3)
    assert few["B"] == few["all"] != few["A"]
    assert ", on A: 0.1 % of the mean, pooled over all rows" in said()
    assert f", on B: {percent(few['all'].share)} of the mean, pooled over all corpora" in said()
    assert overview_cells(table_of(place))[-1] == "0.1 %"

    many = spreads(6)
    assert few["A"] == many["A"]
    assert many["B"].share == pytest.approx(0.01 * math.sqrt(6 / 5), rel=1e-3)
    assert "all corpora" not in said()
    assert overview_cells(table_of(place))[-1] == "0.1 % to 1.1 %"


def test_texts_of_one_name_are_told_apart(place: Any) -> None:
    """`data=files` may read one text by words and by characters."""
    for row, unit in (("rnn", "word"), ("sum-2", "char")):
        for seed in range(1, 7):
            corpus = {"name": "files", "text_checksum": f"sha256:{unit}{'0' * 60}", "unit": unit}
            place.commit(row, seed, 100.0 + (-1) ** seed, corpus=corpus)
    notes = "\n".join(table_notes(table_of(place)))
    assert ", on files (word, word000000): " in notes
    assert ", on files (char, char000000): " in notes


def test_a_counted_model_has_no_error_over_seeds(place: Any) -> None:
    """No seed draws anything in it; in a comparison the other row's error alone counts."""
    place.commit("rnn", 1, 140.0, choices={"model": "kn"})
    for seed, sign in ((1, -1), (2, 1)):
        place.commit("sum-2", seed, 100.0 + sign * math.sqrt(0.5))
    line = line_of(table_of(place), "rnn")
    assert errors_of_mean(line, "test_ppl", None).total == 0
    spread = Spread(0.01, 9, Prior((Variance(1e-4, 9.0),), (1.0,)))
    assert errors_of_mean(line, "test_ppl", spread).total == 0
    other = line_of(table_of(place), "sum-2")
    error = errors_of_gain(line, other, "test_ppl", spread)
    assert error.total == pytest.approx(140 / 100 * 0.01 / math.sqrt(2))
    assert errors_of_gain(line, other, "test_ppl", None).total is None
    assert errors_of_gain(line, line, "test_ppl", None).total == 0


def test_every_model_that_is_counted_is_known_to_be_without_a_seed() -> None:
    """All but the mixture: the networks that it mixes have seeds."""
    counted = {path.stem for path in (ROOT / "conf" / "model").glob("*.yaml") if COUNTED in load(path)}
    assert counted - {"mixture"} == {*UNSEEDED}


def test_a_counted_model_tells_nothing_of_the_spread_over_seeds(place: Any) -> None:
    """Its three results are one number, which a seed has no part in."""
    path = place.sweeps / "toy.yaml"
    path.write_text(path.read_text().replace("run: [model=rnn]", "run: [model=kn]"))
    (place.folder / "conf" / "model" / "kn.yaml").write_text("{_target_: Kn, order: 5}")
    for seed in (1, 2, 3):
        place.commit("rnn", seed, 140.0, choices={"model": "kn"})
        place.commit("sum-2", seed, 100.0 + seed)
        place.commit("max-2", seed, 110.0 + seed)
    lines = {line.row.name: line for line in table_of(place).lines}
    spread = spread_over_seeds("test_ppl", lines.values())
    assert spread
    assert spread == spread_over_seeds("test_ppl", (lines["sum-2"], lines["max-2"]))
    assert spread.freedom == 4


def test_a_trial_by_another_recipe_does_not_widen_the_errors(place: Any) -> None:
    for row, step in (("rnn", 1.0), ("max-2", 1.0), ("sum-2", 50.0)):
        changes = {"config": {"trainer": {"max_epochs": 1}}} if row == "sum-2" else {}
        for seed in (1, 2, 3):
            place.commit(row, seed, 100.0 + step * (seed - 2), **changes)
    lines = {line.row.name: line for line in table_of(place).lines}
    spread = spread_over_seeds("test_ppl", lines.values())
    assert spread == spread_over_seeds("test_ppl", (lines["rnn"], lines["max-2"]))
    assert spread
    assert spread.share == pytest.approx(0.01)
    alone = spread_over_seeds("test_ppl", [lines["sum-2"], lines["sum-2"]])  # where all rows are such trials
    assert alone
    assert alone.share == pytest.approx(0.5)


def test_trials_alone_tell_their_spread_beside_a_row_without_a_result(place: Any) -> None:
    for row in ("rnn", "max-2"):
        for seed in (1, 2, 3):
            place.commit(row, seed, 100.0 + seed, config={"trainer": {"max_epochs": 1}})
    lines = table_of(place).lines
    spread = spread_over_seeds("test_ppl", lines)
    assert spread
    assert spread == spread_over_seeds("test_ppl", [line for line in lines if line.measured])


def line_with(score: Score) -> Line:
    """Of one run without anything but a number."""
    run = Run(1, "done")
    return Line(None, {"test_nll": score}, (run,), "", (), None, None, ())


@pytest.mark.parametrize("seeds", [5, 2, 1])
def test_chance_seldom_decides_between_equal_rows_that_scatter_differently(seeds: int) -> None:
    """Pairs of rows with one mean. By Welch's degrees of freedom chance decides in one of 32 claims with one seed."""
    rng, decided, tables = np.random.default_rng(3), 0, 400
    for _ in range(tables):
        deviations = 0.003 * np.sqrt(2.2 / rng.chisquare(2.2, 24))
        values = [
            tuple(rng.normal(1.0, deviation, seeds if place < 8 else 5))
            for place, deviation in enumerate(deviations)
        ]
        lines = [line_with(Score(None, each, None)) for each in values]
        spread = spread_over_seeds("test_nll", lines)
        assert spread
        for one, other in zip(lines[:8:2], lines[1:8:2], strict=True):
            errors = errors_of_gain(one, other, "test_nll", spread)
            gain = one.scores["test_nll"].mean / other.scores["test_nll"].mean - 1
            decided += abs(gain) > errors.decisive * errors.total
    assert decided / (4 * tables) < 1 / 60
