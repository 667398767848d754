"""Searches of constants on the page: their history, the importance of constants, the best trials."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornn.reporting.commands import write_report
from hornn.reporting.studies import Study, draw_history, draw_study


@pytest.fixture
def page(place: Any) -> Any:
    """The page of a place with these summaries."""

    def write(summary: Any) -> str:
        path = place.results / "studies" / "mine" / "study.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(summary if isinstance(summary, str) else json.dumps(summary))
        write_report(place.results, place.sweeps, place.results / "report")
        return (place.results / "report" / "index.html").read_text()

    return write


def trial(number: int, valid_ppl: float | None, state: str = "complete") -> dict[str, Any]:
    return {
        "trial": number,
        "state": state,
        "valid_ppl": valid_ppl,
        "constants": {"optimizer.lr": 0.1 * number, "optimizer.max_norm": None},
        "epochs": 3,
        "reason": None,
    }


def summary(*trials: dict[str, Any]) -> dict[str, Any]:
    shares = {"optimizer.lr": 0.9, "optimizer.max_norm": 0.1}
    return {
        "study": "mine",
        "command": "python src/train.py optimizer.lr=0.2",
        "importance": shares if len(trials) > 3 else {},
        "trials": list(trials),
    }


def test_a_study_is_shown(page: Any) -> None:
    text = page(
        summary(
            trial(1, 120.0),
            trial(2, 110.5),
            trial(3, 130.0),
            trial(4, None, "pruned"),
            trial(5, None, "fail"),
        )
    )
    assert "5 trials: 3 complete, 1 pruned, 1 failed." in text
    assert "Each completed trial, and the best one so far." in text
    assert "The share of each constant" in text
    assert text.index(">110.50<") < text.index(">120.00<") < text.index(">130.00<")
    assert "<code>python src/train.py optimizer.lr=0.2</code> repeats the best one." in text
    assert 'href="../studies/mine/study.json"' in text


def test_scores_have_the_unit_that_the_summary_names(page: Any) -> None:
    trials = [
        {
            **{key: value for key, value in trial(number, None).items() if key != "valid_ppl"},
            "valid_nll": score,
        }
        for number, score in ((1, 3.25), (2, 3.125))
    ]
    text = page({**summary(*trials), "metric": "valid_nll"})
    assert "<button>nats per frame, validation</button>" in text
    assert text.index(">3.125<") < text.index(">3.250<")
    assert "its metric is unknown: mood" in page({**summary(*trials), "metric": "mood"})


def test_a_study_without_trials_is_a_line(page: Any) -> None:
    text = page(summary())
    assert "no trial yet." in text
    assert "<svg" not in text


def test_a_damaged_summary_says_so(page: Any) -> None:
    assert "the next search of this study writes it again" in page("{")
    assert "the next search of this study writes it again" in page(
        {"study": "mine", "trials": [3], "importance": {}}
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("importance", {"optimizer.lr": "great"}, "optimizer.lr must be a number"),
        ("command", [1], "command must be text or null, got [1]"),
        ("study", "half a sign: \ud800", "half a sign:"),
    ],
)
def test_a_summary_of_wrong_values_leaves_the_page(page: Any, key: str, value: Any, said: str) -> None:
    assert said in page({**summary(trial(1, 100.0), trial(2, 90.0)), key: value})


def test_trials_of_other_constants_stand_in_one_table(page: Any) -> None:
    """As in a summary that somebody put together."""
    text = page(summary(trial(1, 100.0), {**trial(2, 90.0), "constants": {"optimizer.lr": 0.3}}))
    assert '<td data-value="0.3">0.3</td><td data-value=""></td>' in text
    assert '<td data-value="None">null</td>' in text


def trials(*scores: float) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"trial": number, "state": "complete", "valid_ppl": score, "constants": {}}
        for number, score in enumerate(scores)
    )


def test_the_ten_best_trials_are_shown() -> None:
    study = Study("mine", Path(), "", trials(*map(float, range(30, 18, -1))), {})
    assert [trial["valid_ppl"] for trial in study.best] == [float(score) for score in range(19, 29)]


def test_one_trial_has_no_history() -> None:
    assert draw_study(Study("mine", Path(), "", trials(9.0), {})) == []
    assert len(draw_study(Study("mine", Path(), "", trials(9.0, 8.0), {}))) == 1


def test_the_line_of_a_history_is_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    painted: list[Any] = []
    lines: list[Any] = []
    monkeypatch.setattr("hornn.reporting.studies.draw_panel", lambda x, y, name, paint: painted.append(paint))
    trials = tuple(trial(number, score) for number, score in enumerate((9.0, 10.0, 7.0, 8.0)))
    draw_history(Study("mine", Path(), "", trials, {}))
    axes = SimpleNamespace(
        y=SimpleNamespace(log=None), mark=lambda *_: None, line=lambda at, _: lines.append(at)
    )
    painted[0](axes)
    assert lines == [[(0, 9), (1, 9), (1, 9), (2, 9), (2, 7), (3, 7), (3, 7)]]
    assert not axes.y.log


def test_a_constant_has_a_bar_as_long_as_its_share() -> None:
    (panel,) = draw_study(Study("mine", Path(), "", (), {"lr": 0.75, "clip": 0.25}))
    wide, narrow = map(float, re.findall(r'<rect[^>]* width="([\d.]+)"', panel.svg)[:2])
    assert wide == pytest.approx(3 * narrow, abs=0.3)
