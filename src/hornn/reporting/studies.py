"""The searches of constants, from the summary in each one's folder: how it went, and which constants mattered."""

from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from hornn.metrics import FRAMES, WORDS
from hornn.reporting.axes import Axes
from hornn.reporting.panels import COLOURS, SHAPES, Panel, draw_panel
from hornn.reporting.run_numbers import known_name
from hornn.result import check_kinds, read_json
from hornn.shown import shown_texts

SUMMARY = "study.json"
PERPLEXITY = "valid_ppl"  # the metric of a summary that names none
KINDS = {
    "study": (str,),
    "command": (str, NoneType),
    "metric": (str,),
    "trials": (list,),
    "importance": (dict,),
}
TRIAL = {"trial": (int,), "state": (str,), "constants": (dict,)}
SHOWN = 10  # trials of a study that the page lists


class Study(NamedTuple):
    """A search. `trials`: as its summary has them; `metric`: the key of their scores, as `valid_ppl`.

    `importance`: constant -> its share, the largest first.
    """

    name: str
    folder: Path
    command: str
    trials: tuple[dict[str, Any], ...]
    importance: dict[str, float]
    metric: str = PERPLEXITY
    problem: str = ""

    @property
    def completed(self) -> list[dict[str, Any]]:
        return [trial for trial in self.trials if trial[self.metric] is not None]

    @property
    def best(self) -> list[dict[str, Any]]:
        """The completed trials, the best first, as many as are shown."""
        return sorted(self.completed, key=lambda trial: trial[self.metric])[:SHOWN]

    @property
    def constants(self) -> list[str]:
        """The names of the constants of the trials that are shown; a stranger's trials need not have the same ones."""
        return list(dict.fromkeys(name for trial in self.best for name in trial["constants"]))

    @property
    def label(self) -> str:
        """What the scores are: `perplexity, validation`."""
        return known_name(self.metric)

    @property
    def counts(self) -> str:
        """`50 trials: 30 complete, 18 pruned, 2 failed`."""
        words = {"complete": "complete", "pruned": "pruned", "fail": "failed"}
        states = [trial["state"] for trial in self.trials]
        parts = [f"{states.count(state)} {word}" for state, word in words.items() if state in states]
        return f"{len(self.trials)} trials: {', '.join(parts)}" if parts else "no trial yet"


def show_score(score: float, metric: str) -> str:
    """A score of a trial: a perplexity with two decimals, bits and nats with three."""
    return f"{score:.{(WORDS if metric.endswith('_ppl') else FRAMES).digits}f}"


def read_studies(results: Path) -> list[Study]:
    """All searches below `results`/studies, by name; one whose summary is damaged says so."""
    return [read_study(path) for path in sorted((results / "studies").glob(f"*/{SUMMARY}"))]


def read_study(path: Path) -> Study:
    try:
        summary = shown_texts(read_json(path))
        check_kinds(summary, KINDS, KINDS.keys() - {"metric", "command"})
        check_kinds(summary["importance"], dict.fromkeys(summary["importance"], (float,)), ())
        metric = summary.get("metric", PERPLEXITY)
        if not known_name(metric):
            raise ValueError(f"its metric is unknown: {metric}")
        kinds = {**TRIAL, metric: (float, NoneType)}
        for trial in summary["trials"]:
            check_kinds(trial, kinds, kinds)
    except (OSError, ValueError) as error:
        problem = f"{path} cannot be read ({error}): the next search of this study writes it again"
        return Study(path.parent.name, path.parent, "", (), {}, problem=problem)
    return Study(
        summary["study"],
        path.parent,
        summary.get("command") or "",
        tuple(summary["trials"]),
        summary["importance"],
        metric,
    )


def draw_study(study: Study) -> list[Panel]:
    """The outcome of each trial with the best so far, and the share of each constant; none before two trials."""
    panels = [draw_history(study)] if len(study.completed) > 1 else []
    return [*panels, *([draw_importance(study)] if study.importance else [])]


def draw_history(study: Study) -> Panel:
    found = [(trial["trial"], trial[study.metric]) for trial in study.completed]
    best = [min(score for _, score in found[: end + 1]) for end in range(len(found))]

    def paint(axes: Axes) -> None:
        axes.y.log = max(best) > 2 * min(best)
        for point in found:
            axes.mark(point, SHAPES["●"], COLOURS[0])
        trials = [trial for trial, _ in found]
        corners = [
            (trial, score) for score, *pair in zip(best, trials, trials[1:], strict=False) for trial in pair
        ]
        axes.line([*corners, (trials[-1], best[-1])], COLOURS[1])

    caption = "Each completed trial, and the best one so far. Pruned and failed trials are left out."
    return draw_panel("trial", study.label, caption, paint)


def draw_importance(study: Study) -> Panel:
    names: Sequence[str] = list(study.importance)
    shares = [study.importance[name] for name in names]

    def paint(axes: Axes) -> None:
        axes.bars(names)
        axes.x.begin, axes.x.end = 0, 1
        for place, share in enumerate(shares):
            axes.bar(place, 0, share, COLOURS[0])

    caption = "The share of each constant in what tells the best trials from the others, by PED-ANOVA."
    height = max(50 + 21.6 * len(names), 115)
    return draw_panel("importance", "", caption, paint, height=height, left=138)
