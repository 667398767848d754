"""The figures of a grid: the metric against each axis, a line for each combination of the other ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hornn.reporting.curves import learning_curve, time_unit
from hornn.reporting.grid_rows import Axis, Value
from hornn.reporting.lines import Line
from hornn.reporting.panels import Panel, Plot, Style, draw_panel, nth_style
from hornn.reporting.sweeps import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float, float]]  # x, the score, its standard deviation over seeds or 0


def draw_axes(name: str, metric: Metric, lines: Sequence[Line], axes: Sequence[Axis]) -> list[Plot]:
    """A figure for each axis along which two values are measured; against weights and time, too, for a width."""
    plots = [draw_axis(name, metric, lines, axis, axes) for axis in axes]
    return [plot for plot in plots if plot]


def draw_axis(
    name: str, metric: Metric, lines: Sequence[Line], axis: Axis, axes: Sequence[Axis]
) -> Plot | None:
    measured = [line for line in lines if line.row.place and line.scores[metric.key].mean is not None]
    if len({line.row.place[axis.key] for line in measured if axis.key in line.row.place}) < 2:
        return None
    groups: dict[str, list[Line]] = {}
    for line in measured:
        words = [text for key, text in line.row.words.items() if key != axis.key]
        groups.setdefault(", ".join(words), []).append(line)
    styles = {group: nth_style(index) for index, group in enumerate(groups)}
    along = {
        group: [line for line in members if axis.key in line.row.place] for group, members in groups.items()
    }
    level = {group: members[0] for group, members in groups.items() if axis.key not in members[0].row.place}

    def at(line: Line) -> float:
        value = line.row.place[axis.key]
        return float(value) if axis.is_numeric else float(axis.values.index(value))  # type: ignore[arg-type]

    def paint(canvas: "Axes") -> None:
        for group, line in level.items():
            canvas.axhline(line.scores[metric.key].mean or 0.0, color=styles[group].colour, linestyle=":")
        paint_lines(canvas, {group: points(members, metric, at) for group, members in along.items()}, styles)
        ticks(
            canvas,
            axis,
            {
                line.row.place[axis.key]: line.row.words[axis.key]
                for line in measured
                if axis.key in line.row.place
            },
        )

    several = any(line.scores[metric.key].deviation is not None for line in measured)
    bars = ", with one standard deviation where a row has several seeds" if several else ""
    others = " and ".join(other.label for other in axes if other.key != axis.key)
    parts = [f"A line for each {others}{bars}" if others else f"Measured{bars}"]
    parts += [f"dotted: rows without {axis.label}"] if level else []
    caption = f"{metric.label} against {axis.label}. {'; '.join(parts)}."
    panels = [draw_panel(f"{name}-{axis.key}", axis.label, metric.label, caption, paint)]
    if axis.is_width:
        panels += draw_sizes(f"{name}-{axis.key}", metric, along, styles)
    return Plot(tuple(panels), tuple(styles.items()) if len(styles) > 1 else ())


def draw_sizes(
    name: str, metric: Metric, groups: dict[str, list[Line]], styles: dict[str, Style]
) -> list[Panel]:
    """The same lines against the number of weights, and against the time that the best run of each row trained."""
    times = {
        line.row.name: curve[-1][1]
        for members in groups.values()
        for line in members
        if line.best and (curve := learning_curve(line.best, metric))
    }
    unit, size = time_unit(max(times.values(), default=0.0))

    def panel(what: str, x_label: str, at: Callable[[Line], float | None], caption: str) -> Panel:
        def paint(canvas: "Axes") -> None:
            paint_lines(
                canvas, {group: points(members, metric, at) for group, members in groups.items()}, styles
            )
            plain_logarithm(canvas)

        return draw_panel(
            f"{name}-{what}", x_label, metric.label, f"{metric.label} against {caption}.", paint
        )

    return [
        panel(
            "weights",
            "weights (millions)",
            lambda line: line.parameters / 1e6 if line.parameters else None,
            "the number of weights",
        ),
        panel(
            "time",
            f"training time ({unit})",
            lambda line: times[line.row.name] / size if times.get(line.row.name) else None,
            "the time that the best run of each row trained",
        ),
    ]


def points(lines: Sequence[Line], metric: Metric, at: Callable[[Line], float | None]) -> Points:
    found = [(at(line), line.scores[metric.key]) for line in lines]
    return sorted(
        (x, score.mean, score.deviation or 0.0) for x, score in found if x is not None and score.mean
    )


def paint_lines(canvas: "Axes", lines: dict[str, Points], styles: dict[str, Style]) -> None:
    for group, along in lines.items():
        if along:
            x, y, spread = zip(*along, strict=True)
            colour, marker = styles[group]
            canvas.errorbar(x, y, spread, color=colour, marker=marker, capsize=3 if any(spread) else 0)


def plain_logarithm(canvas: "Axes") -> None:
    """A logarithmic axis with a few round numbers on it, written out."""
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    canvas.set_xscale("log")
    canvas.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    canvas.xaxis.set_major_formatter(ScalarFormatter())
    canvas.xaxis.set_minor_locator(NullLocator())


def ticks(canvas: "Axes", axis: Axis, words: Mapping[Value, str]) -> None:
    """At the axis' own values, in words where they are no numbers."""
    from matplotlib.ticker import NullLocator

    if not axis.is_numeric:
        canvas.set_xticks(range(len(axis.values)), [words.get(value, "") for value in axis.values])
        canvas.margins(x=0.3)
        return
    if axis.is_logarithmic:
        canvas.set_xscale("log")
        canvas.xaxis.set_minor_locator(NullLocator())
    canvas.set_xticks(list(axis.values), [f"{value:g}" for value in axis.values])  # type: ignore[arg-type]
