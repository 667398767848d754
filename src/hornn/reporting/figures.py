"""The figures of a table: scores against the rows' x, ranks, learning curves, scores against cost."""

import math
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from hornn.reporting.axis_figures import draw_axes, draw_axis
from hornn.reporting.curves import learning_curve, time_unit
from hornn.reporting.grid_rows import main_axis
from hornn.reporting.lines import Line
from hornn.reporting.panels import COLOURS, INK, Panel, Plot, draw_panel, nth_style
from hornn.reporting.ranks import draw_ranks
from hornn.reporting.scores import has_published
from hornn.reporting.sweeps import Figure, Metric, Sweep
from hornn.reporting.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_WIDTH = 40  # characters of a line that fit beside bars
FAR = 2.0  # times the worst last value: learning curves are shown up to there
DOTS = "..."  # begin the label of a row that says how it differs from one before


def draw_figures(table: Table) -> list[Plot]:
    """The figures that there is data for: scores against the rows' x, ranks, learning curves, scores against cost."""
    plots = []
    for metric in metrics_to_draw(table):
        lines = lines_with(table, metric)
        name = f"{table.sweep.name}-{metric.key}"
        if table.sweep.axes:
            plots += draw_axes(name, metric, lines, table.sweep.axes)
        elif table.sweep.figure:
            plots.append(draw_by_x(name, metric, lines, table.sweep.figure))
        if effects := draw_effects(name, metric, lines, table.sweep):
            plots.append(effects)
        plots += [Plot((draw_ranks(order),), ()) for order in table.orders if order.metric == metric]
        plots += draw_curves(name, metric, lines)
        if not any(axis.is_width for axis in table.sweep.axes):
            plots += draw_costs(name, metric, lines)
    return plots


def draw_main_figure(table: Table) -> Plot | None:
    """The figure that the sweep file asks for, where at least two rows of it are measured."""
    for metric in metrics_to_draw(table):
        lines = lines_with(table, metric)
        if effects := draw_effects(table.sweep.name, metric, lines, table.sweep):
            return effects
        if axis := main_axis(table.sweep.axes):
            return draw_axis(table.sweep.name, metric, lines, axis, table.sweep.axes)
        if table.sweep.figure and sum(line.row.x is not None and bool(line.measured) for line in lines) > 1:
            return draw_by_x(table.sweep.name, metric, lines, table.sweep.figure)
    return None


def metrics_to_draw(table: Table) -> list[Metric]:
    """What to draw: the measured scores of the test split; of validation in a table without them."""
    metrics = [metric for metric in table.sweep.metrics if metric.key in ("test_ppl", "test_bpc")]
    metrics = metrics or [metric for metric in table.sweep.metrics if metric.key == "valid_ppl"]
    return [metric for metric in metrics if any(line.measured for line in lines_with(table, metric))]


def lines_with(table: Table, metric: Metric) -> list[Line]:
    return [line for line in table.lines if metric.key in line.scores]


def draw_by_x(name: str, metric: Metric, lines: Sequence[Line], figure: Figure) -> Plot:
    """The metric against the rows' x, a line for each group, the published numbers beside the measured ones."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if line.row.x is not None:
            groups.setdefault(line.row.group, []).append(line)
    styles = {group: nth_style(index) for index, group in enumerate(groups)}

    def paint(axes: "Axes") -> None:
        if figure.published_best:
            axes.axvspan(*figure.published_best, color=INK, alpha=0.08, linewidth=0)
        for group, members in groups.items():
            colour, marker = styles[group]
            scores = [(line.row, line.scores[metric.key]) for line in members]
            theirs = sorted(
                (row.x, score.published.value)
                for row, score in scores
                if score.published and score.published.value is not None and not row.dynamic
            )
            ours = sorted(
                (row.x, score.mean, math.nan if score.deviation is None else score.deviation)
                for row, score in scores
                if score.values
            )
            if theirs:
                axes.plot(
                    *zip(*theirs, strict=True), "--", color=colour, marker=marker, mfc="none", alpha=0.7
                )
            if ours:
                x, y, spread = zip(*ours, strict=True)
                axes.errorbar(x, y, spread, color=colour, marker=marker, capsize=3)
        axes.set_xticks(sorted({line.row.x for line in lines if line.row.x is not None}))

    several = any(line.row.x is not None and line.scores[metric.key].deviation is not None for line in lines)
    bars = ", with one standard deviation where a row has several seeds" if several else ""
    parts = [f"Full marks: measured{bars}"]
    shown = [line for line in lines if line.row.x is not None and has_published(line.scores[metric.key])]
    if shown:
        left_out = ", without dynamic evaluation" if any(line.row.dynamic for line in shown) else ""
        parts.append(f"open marks and broken lines: published{left_out}")
    if figure.published_best:
        parts.append("grey: where the paper found the best")
    caption = f"{metric.label} against {figure.x_label}. {'; '.join(parts)}."
    panel = draw_panel(f"{name}-x", figure.x_label, metric.label, caption, paint)
    return Plot((panel,), tuple(styles.items()))


def draw_effects(name: str, metric: Metric, lines: Sequence[Line], sweep: Sweep) -> Plot | None:
    """How far each row of the group of `figure.base` is from that row, as bars; None where nothing is measured."""
    means = {line.row.name: line.scores[metric.key].mean for line in lines}
    base = next((line for line in lines if sweep.figure and line.row.name == sweep.figure.base), None)
    if base is None or (origin := means[base.row.name]) is None:
        return None
    effects = sorted(
        (mean - origin, line.row.label.removeprefix(f"{DOTS} "))
        for line in lines
        if line is not base
        and line.row.group == base.row.group
        and (mean := means[line.row.name]) is not None
    )
    if not effects:
        return None
    differences = [difference for difference, _ in effects]
    labels = [fill(label, LABEL_WIDTH) for _, label in effects]
    low, high = min(0.0, *differences), max(0.0, *differences)
    room = 0.2 * (high - low) or 1.0  # for the numbers at the bars' ends

    def paint(axes: "Axes") -> None:
        good = -1 if sweep.lower_is_better else 1
        colours = [COLOURS[0 if good * difference > 0 else 1] for difference in differences]
        axes.barh(range(len(labels)), differences, color=colours, height=0.62)
        for place, difference in enumerate(differences):
            axes.annotate(
                f"{difference:+.1f}",
                (difference, place),
                (3 if difference > 0 else -3, 0),
                textcoords="offset points",
                ha="left" if difference > 0 else "right",
                va="center",
                fontsize=8,
            )
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_xlim(low - room, high + room)
        axes.set_yticks(range(len(labels)), labels, fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")

    x_label = f"difference from {origin:.1f}"
    caption = f"{metric.label}: how far each row is from “{base.row.label}”, {origin:.1f}."
    tallest = max(label.count("\n") for label in labels)
    height = 0.58 + (0.21 + 0.08 * tallest) * len(labels)
    return Plot((draw_panel(f"{name}-effects", x_label, "", caption, paint, height=height, left=0.5),), ())


def draw_curves(name: str, metric: Metric, lines: Sequence[Line]) -> list[Plot]:
    """Validation over epochs and over time, of each row's best run."""
    curves = [
        (label, nth_style(place), points)
        for place, (label, line) in enumerate(with_full_labels(lines))
        if line.best and len(points := learning_curve(line.best, metric)) > 1
    ]
    if not curves:
        return []
    unit, size = time_unit(max(points[-1][1] for *_, points in curves))
    values = [value for *_, points in curves for *_, value in points]
    top = FAR * max(points[-1][2] for *_, points in curves)  # a run may begin far above what matters
    cut = f" Values above {top:,.0f} are left out." if max(values) > top else ""

    def panel(axis: int, scale: float, x_label: str, caption: str) -> Panel:
        def paint(axes: "Axes") -> None:
            for _, (colour, marker), points in curves:
                x, y = [point[axis] / scale for point in points], [point[2] for point in points]
                axes.plot(x, y, color=colour, marker=marker, markersize=3, linewidth=1.2)
            if cut:
                axes.set_ylim(0.97 * min(values), top)

        y_label = metric.label.replace("test", "valid")
        return draw_panel(f"{name}-curve{axis}", x_label, y_label, caption + cut, paint, log=True)

    panels = (
        panel(0, 1, "epochs", "Validation after each epoch, of each row's best run by validation."),
        panel(1, size, f"training time ({unit})", "The same over time, which compares only on one device."),
    )
    return [Plot(panels, tuple((label, style) for label, style, _ in curves))]


def with_full_labels(lines: Iterable[Line]) -> list[tuple[str, Line]]:
    """The lines with their labels; a label that begins with dots stands behind the label that it goes on from."""
    pairs, head = [], ""
    for line in lines:
        label = line.row.label
        head = head if label.startswith(DOTS) else label
        pairs.append((f"{head} {label}" if label.startswith(DOTS) else label, line))
    return pairs


def draw_costs(name: str, metric: Metric, lines: Sequence[Line]) -> list[Plot]:
    """The metric against weights and against the time that the best run trained."""
    points = [
        (label, nth_style(place), (line.parameters / 1e6, curve[-1][1], mean))
        for place, (label, line) in enumerate(with_full_labels(lines))
        if line.best
        and line.parameters
        and (mean := line.scores[metric.key].mean) is not None
        and (curve := learning_curve(line.best, metric))
    ]
    if len(points) < 2:
        return []
    unit, size = time_unit(max(point[1] for *_, point in points))

    def panel(axis: int, scale: float, x_label: str, caption: str) -> Panel:
        def paint(axes: "Axes") -> None:
            for _, (colour, marker), point in points:
                axes.plot(point[axis] / scale, point[2], color=colour, marker=marker)

        return draw_panel(f"{name}-cost{axis}", x_label, metric.label, caption, paint)

    panels = [
        panel(
            1, size, f"training time ({unit})", f"{metric.label} against the time that the best run trained."
        )
    ]
    if len({point[0] for *_, point in points}) > 1:
        panels.insert(0, panel(0, 1, "weights (millions)", f"{metric.label} against the number of weights."))
    return [Plot(tuple(panels), tuple((label, style) for label, style, _ in points))]
