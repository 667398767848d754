"""How far networks look back: figures on the page and beside the results, and what of a result is refused."""

import json
import math
import re
from copy import deepcopy
from html import escape
from typing import Any

import pytest

from hornn.reporting.axes import Axes
from hornn.reporting.commands import keep_for_commit, write_report
from hornn.reporting.excerpts import rows_excerpt
from hornn.reporting.json_table import table_json
from hornn.reporting.latex import table_latex
from hornn.reporting.markdown import measured_gain_text, sign_note, table_markdown
from hornn.reporting.memory import draw_memory, factor_notes, measured_rows
from hornn.reporting.run_numbers import means, scores_of_table
from hornn.reporting.scores import REACHES
from hornn.reporting.seeds import spread_over_seeds
from hornn.reporting.table_pages import write_table_pages
from hornn.result import check_result
from reporting.place import cells_of, claims_of, line_of, table_of

NORMS = {
    key: [scale, 0.1 * scale, 0.0] for key, scale in (("mean", 3.0), ("q25", 1.0), ("q50", 2.0), ("q75", 3.0))
}
PATH = {"low": -1.0, "high": 2.0, "rms": 1.5, "rms_by_step": [1.0, None, 2.0]}
STAGE = {
    "stage": "after",
    "epoch": 2,
    "gradient": {"all": NORMS, "h": NORMS, "c": NORMS},
    "saturation": [0.1, 0.2, 0.3],
    "paths": {"input": PATH, "pooled": PATH, "a $path <b>": PATH},
}
MEMORY: dict[str, Any] = {
    "schema_version": 1,
    "summary": {"gradient_reach": 7},
    "stages": [{**STAGE, "stage": "start", "epoch": 0}, STAGE],
    "known": {"perplexity": [200.0, 110.0, 100.5], "whole": 100.0},
    "factors": [
        {"layer": 1, "values": [0.5, 0.7, 0.9], "units": [{"factor": 0.9, "words": ["<b>", "stocks"]}]}
    ],
}


def test_a_measured_row_is_drawn(filled: Any) -> None:
    assert draw_memory(table_of(filled)) == []
    filled.commit("sum-2", 1, 90.0, memory=MEMORY)
    plots = draw_memory(table_of(filled))
    captions = [panel.caption for plot in plots for panel in plot.panels]
    assert len(captions) == 8
    assert "after training, epoch 2" in captions[0]
    assert "before training" in captions[1]
    assert [label for label, _ in plots[0].legend] == ["Sum, order 2"]
    assert "a $path &lt;b&gt;, -1.00 to 2.00" in plots[-1].panels[0].svg
    write_report(filled.results, filled.sweeps, filled.results / "report")
    page = (filled.results / "report" / "index.html").read_text()
    assert "<h2>Memory</h2>" in page
    assert "reads most of: &lt;b&gt;, stocks." in page


def test_what_is_drawn_are_the_numbers_of_the_result(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[list[tuple[float, float]]] = []
    bands: list[tuple[list[tuple[int, float]], ...]] = []
    monkeypatch.setattr(Axes, "line", lambda self, points, *_, **__: lines.append(points))
    monkeypatch.setattr(Axes, "band", lambda self, low, high, *_: bands.append((low, high)))
    c = {key: [10 * norm for norm in norms] for key, norms in NORMS.items()}
    after = {**STAGE, "gradient": {"all": NORMS, "h": NORMS, "c": c}}
    filled.commit("sum-2", 1, 90.0, memory={**MEMORY, "stages": [after]})
    assert draw_memory(table_of(filled))
    gradient, known, h, cell, pooled, saturated = ([pytest.approx(point) for point in line] for line in lines)
    assert gradient == [(1, 1.0), (2, 0.1), (3, 1e-7)]
    assert known == [(1, 100.0), (2, 10.0), (3, 0.5)]
    assert (h, cell) == ([(1, 2.0), (2, 0.2), (3, 0.0)], [(1, 20.0), (2, 2.0), (3, 0.0)])
    assert pooled == [(1, 1.0), (3, 2.0)]
    assert saturated == [(1, 10.0), (2, 20.0), (3, 30.0)]
    ((low, high),) = bands
    assert [value for _, value in low] == pytest.approx([0.5, 0.05, 1e-7])
    assert [value for _, value in high] == pytest.approx([1.5, 0.15, 1e-7])


def test_rows_of_a_group_share_a_colour_and_differ_in_their_dashes(filled: Any) -> None:
    for name in ("rnn", "sum-2", "sum-3"):
        filled.commit(name, 1, 90.0, memory=MEMORY)
    looks = {row.label: (row.style.colour, row.dash) for row in measured_rows(table_of(filled))}
    (rnn, _), (two, full), (three, broken) = (looks[name] for name in ("RNN", "Sum, order 2", "Sum, order 3"))
    assert rnn != two == three
    assert (full, broken) == ("-", "--")


def test_its_figures_stand_beside_the_results(filled: Any) -> None:
    filled.commit("sum-2", 1, 90.0, memory=MEMORY)
    table = table_of(filled)
    folder = filled.results / "tables"
    write_table_pages([table], folder)
    text = (folder / "toy" / "README.md").read_text()
    assert "## Memory" in text
    captions = [panel.caption for plot in draw_memory(table) for panel in plot.panels]
    assert len(list((folder / "toy").glob("memory-*.svg"))) == text.count("](memory-") == len(captions) == 8
    for number, caption in enumerate(captions, start=1):
        assert caption.replace("<", "&lt;") in text
        assert escape(caption) in (folder / "toy" / f"memory-{number}.svg").read_text()
    assert "before training](memory-2.svg) |\n|---|---|\n| How much of the gradient" in text
    filled.commit("sum-2", 1, 90.0)
    write_table_pages([table_of(filled)], folder)
    assert not list((folder / "toy").glob("memory-*.svg"))


def test_factors_are_told_in_words(filled: Any) -> None:
    filled.commit("sum-2", 1, 90.0, memory=MEMORY)
    assert factor_notes(table_of(filled)) == [
        "Sum, order 2, learned factors of layer 1: from 0.500 to 0.900.",
        "Sum, order 2, the unit of factor 0.900 reads most of: <b>, stocks.",
    ]


def test_a_claim_may_bound_one_number(place: Any, broken: Any) -> None:
    key = "memory.summary.gradient_reach"
    claim = "  claims: [{says: it vanishes, better: sum-2, metric: %s, at_most: %s}]\n"
    for limit, outcome in ((10, "for"), (5, "against")):
        path = broken("metric: test_ppl", f"metric: {key}")
        path.write_text(path.read_text() + claim % (key, limit))
        place.commit("sum-2", 1, memory=MEMORY)
        assert claims_of(place) == [
            f"Claim: it vanishes. Measured: Sum, order 2: 7, where at most {limit} is claimed (1 seed). "
            f"Outcome: a tendency {outcome} it."
        ]
    path.write_text(path.read_text().replace(", at_most: 5", ""))
    with pytest.raises(ValueError, match="needs than, the rows that lose, or at_most"):
        claims_of(place)


@pytest.mark.parametrize(
    ("better", "than", "gain", "outcome"),
    [
        (
            50,
            40,
            "≥ +25.0 % (reach)",
            "Measured: Sum, order 2: ≥ 50; Sum, order 3: 40; 25.0 % more (one seed each). Outcome: a tendency for it.",
        ),
        (
            40,
            50,
            "≤ -20.0 % (reach)",
            "Sum, order 3: ≥ 50; 20.0 % less (one seed each). Outcome: a tendency against",
        ),
        (50, 50, "", "not judged (a seed reached"),
        (
            50,
            60,
            "≥ -16.7 % (reach)",
            "16.7 % less (one seed each). Outcome: not judged (a seed reached the last step",
        ),
        (
            50,
            None,
            "≤ +9.1 % (reach)",
            "Sum, order 2: ≥ 50, where at most 55 is claimed (1 seed). Outcome: not judged (a seed reached",
        ),
        (
            100,
            None,
            "≤ -81.8 % (reach)",
            "Sum, order 2: ≥ 100, where at most 55 is claimed (1 seed). Outcome: a tendency against",
        ),
    ],
)
def test_a_lower_bound_decides_no_claim_that_the_true_number_may_turn_round(
    place: Any, broken: Any, better: int, than: int | None, gain: str, outcome: str
) -> None:
    """Two rows, of which one was looked at 50 steps back, the other 100; the gain is a bound, too."""
    key = "memory.summary.gradient_reach"
    path = broken("metric: test_ppl", f"metric: {key}")
    path.write_text(path.read_text().replace('"perplexity, test"', "reach"))
    path.write_text(path.read_text().replace("lower_is_better: true", "lower_is_better: null"))
    rival = "than: sum-3" if than else "at_most: 55"
    path.write_text(
        path.read_text() + f"  claims: [{{says: it reaches far, better: sum-2, metric: {key}, {rival}}}]\n"
    )
    path.write_text(re.sub(r"\n +published: .*", "", path.read_text()))
    for row, reach in (("sum-2", better), ("sum-3", than)):
        settings = {"lags": 50 if reach == 50 else 100}
        place.commit(row, 1, memory=MEMORY | {"settings": settings, "summary": {"gradient_reach": reach}})
    assert outcome in claims_of(place)[0]
    (verdict,) = table_of(place).verdicts
    assert measured_gain_text(verdict) == gain
    assert ("the true gain is this or more, or this or less" in sign_note([verdict])) == bool(gain)


def claim_more(broken: Any, key: str) -> None:
    """The table is of this number, of which more is better, and claims that order 2 has more than order 3."""
    path = broken("metric: test_ppl", f"metric: {key}")
    text = re.sub(r"\n +published: .*", "", path.read_text()).replace("better: true", "better: false")
    path.write_text(f"{text}  claims: [{{says: so, better: sum-2, than: sum-3, metric: {key}}}]\n")


def test_the_gain_of_a_lower_bound_has_no_error(place: Any, broken: Any) -> None:
    """Neither in a claim nor in an excerpt."""
    claim_more(broken, "memory.summary.gradient_reach")
    for row, reaches in (("sum-2", (50, 50, 50)), ("sum-3", (9, 10, 11)), ("max-2", (19, 20, 21))):
        for seed, reach in enumerate(reaches, start=1):
            summary = {"gradient_reach": reach}
            place.commit(row, seed, memory=MEMORY | {"settings": {"lags": 50}, "summary": summary})
    table, home = table_of(place), {"toy": place.folder / "toy.md"}
    (verdict,) = table.verdicts
    assert (verdict.outcome, verdict.error, verdict.bound) == ("confirmed", None, "≥")
    text = rows_excerpt(["toy", "sum-3", "sum-2", "max-2"], [table], home, place.folder)
    assert "| ≥ +400.0 % |" in text
    assert re.search(r"\| \+100.0 ± [\d.]+ % \|", text)
    assert "the true gain is this or more" in text


def test_whole_numbers_of_steps_are_rounded(place: Any, broken: Any) -> None:
    """Both rows scatter by 10 % over three seeds; the rounding of their means counts beside."""
    claim_more(broken, "memory.summary.effective_memory")
    for name, counts in (("sum-2", (9, 10, 11)), ("sum-3", (18, 20, 22))):
        for seed, count in enumerate(counts, start=1):
            memory = {**MEMORY, "settings": {"lags": 50}, "summary": {"effective_memory": count}}
            place.commit(name, seed, memory=memory)
    of_means = 2 * 0.1**2 / 3 + (1 / 10**2 + 1 / 20**2) / 12
    (verdict,) = table_of(place).verdicts
    assert verdict.error == pytest.approx(0.5 * math.sqrt(of_means))


@pytest.mark.parametrize("key", REACHES)
def test_one_seed_at_the_last_step_makes_the_mean_a_lower_bound(place: Any, broken: Any, key: str) -> None:
    broken("metric: test_ppl", f"metric: {key}")
    for seed, reach in ((1, 50), (2, 40)):
        memory = MEMORY | {"settings": {"lags": 50}, "summary": {key.rpartition(".")[2]: reach}}
        place.commit("rnn", seed, memory=memory)
    assert table_of(place).lines[0].scores[key].at_limit


def test_a_reach_at_the_limit_of_the_lags_is_a_lower_bound(place: Any, broken: Any) -> None:
    """No measurement without a spread; rows below the limit, and numbers that count no steps, are as ever."""
    key, other = "memory.summary.gradient_reach", "memory.summary.pooled_rms"
    broken(
        'metric: test_ppl\n  metric_label: "perplexity, test"',
        f"metric: [{{key: {key}, label: reach}}, {{key: {other}, label: size}}]",
    )
    path = place.sweeps / "toy.yaml"
    path.write_text(re.sub(r"\n +published: .*", "", path.read_text()))

    def measure(row: str, *reaches: int) -> None:
        for seed, reach in enumerate(reaches, start=1):
            summary = {"gradient_reach": reach, "pooled_rms": 50.0}
            place.commit(row, seed, memory=MEMORY | {"settings": {"lags": 50}, "summary": summary})

    for row, reaches in (("rnn", (50, 50)), ("sum-2", (47, 50)), ("sum-3", (49, 48, 47, 46, 45))):
        measure(row, *reaches)
    table = table_of(place)
    shown = [cells_of(table, row)["measured (reach)"] for row in ("rnn", "sum-2", "sum-3")]
    assert shown == ["≥ 50 (n = 2)", "≥ 48.5 (n = 2)", "47.0 ± 1.6 (n = 5)"]
    assert cells_of(table, "rnn")["measured (size)"] == "50.0 ± 0.0 (n = 2)"
    assert "the true mean is this or more" in table_markdown(table)
    assert r"$\geq$ 50 (n = 2)" in table_latex(table)
    rows = json.loads(table_json(table))["rows"]
    assert rows[0]["scores"][key] == {
        "measured": [50, 50],
        "mean": 50,
        "at_limit": True,
        "deviation": 0,
        "best_by_validation": 50,
    }
    assert "at_limit" not in rows[2]["scores"][key]
    alone = spread_over_seeds(key, [line_of(table, "sum-3")])
    assert spread_over_seeds(key, table.lines) == alone is not None, "seeds at the limit are alike"
    means_of, run = means(line_of(table, "rnn"), [key]), line_of(table, "rnn").runs[0]
    assert means_of[key][1] == scores_of_table(table, run)[key][1] == "≥ 50", (
        "where rows or runs are compared"
    )
    home = {"toy": place.folder / "toy.md"}
    text = rows_excerpt(["toy", "rnn", "sum-3", f"metric={key}"], [table], home, place.folder)
    assert "| RNN | ≥ 50 (2 seeds) |" in text
    write_report(place.results, place.sweeps, place.results / "report")
    page = (place.results / "report" / "index.html").read_text()
    assert '<td data-value="48.5">≥ 48.5' in page, "its column is sorted by numbers"
    assert "≥: a seed reached the last step" in text


def test_measurements_that_were_added_are_kept(place: Any) -> None:
    place.commit("rnn", 1, 100.0)
    result = place.result(1, 100.0, memory=MEMORY)
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    assert "1 results kept" in keep_for_commit(place.results, place.sweeps)
    kept = json.loads((place.results / "tables" / "toy" / "rnn-seed1.json").read_text())
    assert kept["memory"] == MEMORY
    assert "0 results kept" in keep_for_commit(place.results, place.sweeps)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("schema_version",), 2),
        (("stages",), []),
        (("stages", 0, "gradient", "all", "q50"), [1.0, "x"]),
        (("stages", 0, "gradient", "all"), []),
        (("stages", 1, "saturation"), None),
        (("stages", 1, "paths", "pooled", "low"), "0"),
        (("known", "whole"), []),
        (("factors", 0, "values"), {}),
        (("factors", 0, "values"), []),
        (("factors", 0, "values", 0), None),
        (("factors", 0, "units", 0, "words"), "the"),
        (("factors", 0, "units", 0, "words", 0), 7),
        (("summary",), 3),
    ],
)
def test_damaged_measurements_are_refused(place: Any, where: tuple[Any, ...], value: Any) -> None:
    memory = deepcopy(MEMORY)
    node = memory
    for key in where[:-1]:
        node = node[key]
    node[where[-1]] = value
    with pytest.raises(ValueError, match=r"must|schema version|stage"):
        check_result(place.result(1, 100.0, memory=memory), ())
    place.commit("rnn", 1, memory=memory)
    assert "damaged" in line_of(table_of(place), "rnn").status


def test_measurements_are_not_lost_to_the_same_run_elsewhere(place: Any) -> None:
    """There it learned from the test text, and nobody analysed it."""
    kept = place.commit("rnn", 1, 100.0, memory=MEMORY)
    result = place.result(1, 100.0, dynamic={"test_ppl": 95.0})
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": result})
    said = keep_for_commit(place.results, place.sweeps)
    assert f"result.json lacks memory, add that too: {kept} stays" in said
    assert "0 results kept" in said
    assert json.loads(kept.read_text())["memory"] == MEMORY
