"""The figures of a grid: the metric against each axis, a line for each combination of the other ones."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill

from hornn.reporting.axes import SMALL, Axes
from hornn.reporting.cost_panels import Words, draw_costs
from hornn.reporting.grid_rows import Axis, Value
from hornn.reporting.lines import Line
from hornn.reporting.panels import (
    INK,
    Plot,
    Style,
    Styles,
    draw_line,
    draw_panel,
    draw_point,
    label_ends,
    measured_tip,
    whose,
)
from hornn.reporting.row_styles import line_style
from hornn.reporting.sweeps import Metric

Groups = Mapping[str, Sequence[Line]]  # what a line goes through
LETTERS = 60  # fit below an axis, side by side
MANY = 16  # more rows have no legend: pointing at a mark names it


def draw_axes(metric: Metric, lines: Sequence[Line], axes: Sequence[Axis], styles: Styles) -> list[Plot]:
    """A figure for each axis along which two values are measured; against weights and time, too, for a width.

    Axes of words are drawn where there is no axis of numbers: its lines tell their values apart already.
    """
    numeric = [axis for axis in axes if axis.is_numeric]
    plots = [draw_axis(metric, lines, axis, axes, styles) for axis in numeric]
    plots = plots if any(plots) else [draw_axis(metric, lines, axis, axes, styles) for axis in axes]
    return [plot for plot in plots if plot]


def draw_axis(
    metric: Metric, lines: Sequence[Line], axis: Axis, axes: Sequence[Axis], styles: Styles
) -> Plot | None:
    measured = [line for line in lines if line.row.place and line.scores[metric.key].mean is not None]
    if len({line.row.place[axis.key] for line in measured if axis.key in line.row.place}) < 2:
        return None
    telling = {other.key for other in axes if len({line.row.words.get(other.key) for line in measured}) > 1}
    groups: dict[str, list[Line]] = {}
    for line in measured:
        words = [text for key, text in line.row.words.items() if key != axis.key and key in telling]
        groups.setdefault(", ".join(words), []).append(line)
    drawn = {group: line_style(members, styles) for group, members in groups.items()}
    along = {
        group: [line for line in members if axis.key in line.row.place] for group, members in groups.items()
    }
    level = {group: members[0] for group, members in groups.items() if axis.key not in members[0].row.place}

    def at(line: Line) -> float:
        value = line.row.place[axis.key]
        return float(value) if axis.is_numeric else float(axis.values.index(value))  # type: ignore[arg-type]

    def paint(canvas: Axes) -> None:
        ends = paint_lines(canvas, metric, along, drawn, styles, at)
        end = max(x for x, *_ in ends)
        for group, line in level.items():
            style, mean = styles[line.row.name], line.scores[metric.key].mean or 0.0
            tip = measured_tip(metric.key, line.scores[metric.key])
            canvas.level(mean, style.colour, whose=whose(style, tip))
            ends.append((end, mean, group, style.colour))
        named = [line.row for line in measured if axis.key in line.row.place]
        ticks(canvas, axis, {row.place[axis.key]: row.words[axis.key] for row in named})
        label_ends(canvas, ends)

    def paint_costs(canvas: Axes, places: Mapping[str, float], _: Words) -> None:
        paint_lines(canvas, metric, along, drawn, styles, lambda line: places.get(line.row.name))
        canvas.x.log = True

    several = any(line.scores[metric.key].deviation is not None for line in measured)
    bars = ", with one standard deviation where a row has several seeds" if several else ""
    others = " and ".join(other.label for other in axes if other.key != axis.key and other.key in telling)
    parts = [f"A line for each {others}{bars}" if others else f"Measured{bars}"]
    parts += [f"dotted: rows without {axis.label}"] if level else []
    caption = f"{metric.label} against {axis.label}. {'; '.join(parts)}."
    panels = [draw_panel(axis.label, metric.label, caption, paint)]
    if axis.is_width:
        panels += draw_costs(metric, [line for members in along.values() for line in members], paint_costs)
    if any(style.colour == INK for style in drawn.values()):  # lines through rows of several colours
        rows = [(line.row.label, styles[line.row.name]) for line in measured]
        return Plot(tuple(panels), tuple(rows) if len(rows) <= MANY else ())
    return Plot(tuple(panels), tuple(drawn.items()) if len(drawn) > 1 else ())


def paint_lines(
    canvas: Axes,
    metric: Metric,
    groups: Groups,
    drawn: dict[str, Style],
    styles: Styles,
    at: Callable[[Line], float | None],
) -> list[tuple[float, float, str, str]]:
    """A line through the rows of each group that have an x, and their marks; where each line ends, and its name."""
    ends = []
    for group, members in groups.items():
        found = [(at(line), line.scores[metric.key], line) for line in members]
        along = sorted(
            (x, score.mean, styles[line.row.name].series, line)
            for x, score, line in found
            if x is not None and score.mean is not None
        )
        draw_line(canvas, [point[:2] for point in along], drawn[group])
        for x, y, _, line in along:
            score = line.scores[metric.key]
            draw_point(canvas, x, y, styles[line.row.name], measured_tip(metric.key, score), score.deviation)
        ends += [(*along[-1][:2], group, drawn[group].colour)] if along else []
    return ends


def ticks(canvas: Axes, axis: Axis, words: Mapping[Value, str]) -> None:
    """At the measured values of an axis, in words where they are no numbers."""
    if axis.is_numeric:
        canvas.x.log = axis.is_logarithmic
        canvas.x.ticks = {value: f"{value:g}" for value in axis.values if value in words}  # type: ignore[misc]
        return
    width = max(6, LETTERS // len(axis.values))
    canvas.x.ticks = {at: fill(words.get(value, ""), width) for at, value in enumerate(axis.values)}
    canvas.x.size = SMALL
    canvas.x.begin, canvas.x.end = -0.5, len(axis.values) - 0.5
