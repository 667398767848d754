"""Two panels that set a metric against what the rows cost: the number of weights, and the time that they trained."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hornn.reporting.axes import Axes
from hornn.reporting.lines import Line, least_seconds, training_seconds
from hornn.reporting.panels import Panel, draw_panel
from hornn.reporting.sweeps import Metric

TELLING = 1.05  # times the least number of weights: below that they say nothing
UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))

Words = Callable[[float], str]  # of an x
Paint = Callable[[Axes, Mapping[str, float], Words], None]  # on axes, given row -> its x


def draw_costs(metric: Metric, lines: Sequence[Line], paint: Paint) -> list[Panel]:
    """The metric against weights, where the rows differ much in them, and against time, where two rows have one.

    `paint` draws the rows.
    """
    panels: list[Panel] = []

    def add(what: str, words: Words, places: Mapping[str, float], caption: str) -> None:
        caption = f"{metric.label} against {caption}."
        panels.append(draw_panel(what, metric.label, caption, lambda axes: paint(axes, places, words)))

    weights = {line.row.name: line.parameters / 1e6 for line in lines if line.parameters}
    if weights and max(weights.values()) > TELLING * min(weights.values()):
        add("weights (millions)", lambda x: f"{1e6 * x:,.0f} weights", weights, "the number of weights")
    times = training_times(lines)
    if len(times.seconds) > 1:
        unit, size = time_unit(max(times.seconds.values()))
        in_units = {name: seconds / size for name, seconds in times.seconds.items()}
        add(f"training time ({unit})", lambda x: f"{x:.3g} {unit}", in_units, times.caption)
    return panels


def time_unit(seconds: float) -> tuple[str, float]:
    """The largest unit of time that `seconds` is at least two of, and its length."""
    return next((unit, size) for unit, size in UNITS if seconds >= 2 * size or size == 1)


class Times(NamedTuple):
    """Seconds that the best run of each row trained, without pauses, on one device: other devices do not compare.

    All its epochs are as long as the median one of the row's fastest run on this device.
    """

    seconds: dict[str, float]
    caption: str  # whose times they are


def training_times(lines: Sequence[Line]) -> Times:
    """The costs on the device where most of these rows ran; the caption counts the rows that have no place on it."""
    best = {line.row.name: line.best.result for line in lines if line.best}
    each = {
        line.row.name: least_seconds(
            run for run in line.measured if run.result.get("device") == best[line.row.name].get("device")
        )
        for line in lines
        if line.best
    }
    seconds = {
        name: taken for name, result in best.items() if (taken := training_seconds(result, each[name]))
    }
    places = {name: str(best[name].get("device")) for name in seconds}
    if not places:
        return Times({}, "")
    ((device, count),) = Counter(places.values()).most_common(1)
    others, untimed = len(places) - count, len(lines) - len(places)
    left_out = f"; {rows_in_words(others)} ran on another device" if others else ""
    left_out += f"; for {rows_in_words(untimed)} no comparable time is known" if untimed else ""
    return Times(
        {name: taken for name, taken in seconds.items() if places[name] == device},
        f"the training time of the best run, at the pace of the fastest, on {device}{left_out}",
    )


def rows_in_words(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"
