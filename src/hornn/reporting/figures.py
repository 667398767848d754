"""The figures of a table: scores against the rows' x, ranks, scores against cost."""

from collections.abc import Mapping, Sequence
from textwrap import fill

from hornn.reporting.axes import Axes
from hornn.reporting.axis_figures import draw_axes, draw_axis
from hornn.reporting.cost_panels import Words, draw_costs
from hornn.reporting.grid_rows import main_axis
from hornn.reporting.lines import Line
from hornn.reporting.numbers import format_number, format_published
from hornn.reporting.panels import (
    INK,
    Plot,
    Styles,
    draw_line,
    draw_panel,
    draw_point,
    label_ends,
    measured_tip,
    whose,
)
from hornn.reporting.ranks import draw_ranks
from hornn.reporting.row_styles import DOTS, line_style, row_styles, with_full_labels
from hornn.reporting.sweeps import Figure, Metric, Sweep
from hornn.reporting.tables import Table

LABEL_WIDTH = 40  # characters of a line that fit beside bars


def draw_figures(table: Table) -> list[Plot]:
    """The figures that there is data for: scores against the rows' x, ranks, scores against cost."""
    plots, styles = [], row_styles(table.lines)
    for metric in metrics_to_draw(table):
        lines = lines_with(table, metric)
        if table.sweep.axes:
            plots += draw_axes(metric, lines, table.sweep.axes, styles)
        elif table.sweep.figure:
            plots.append(draw_by_x(metric, lines, table.sweep.figure, styles))
        if effects := draw_effects(metric, lines, table.sweep, styles):
            plots.append(effects)
        plots += [Plot((draw_ranks(order, styles),), ()) for order in table.orders if order.metric == metric]
        if not any(axis.is_width for axis in table.sweep.axes):
            plots += draw_by_costs(metric, lines, styles)
    return plots


def draw_main_figure(table: Table) -> Plot | None:
    """The figure that the sweep file asks for, where at least two rows of it are measured."""
    styles = row_styles(table.lines)
    for metric in metrics_to_draw(table):
        lines = lines_with(table, metric)
        if effects := draw_effects(metric, lines, table.sweep, styles):
            return effects
        if axis := main_axis(table.sweep.axes):
            return draw_axis(metric, lines, axis, table.sweep.axes, styles)
        if table.sweep.figure and sum(line.row.x is not None and bool(line.measured) for line in lines) > 1:
            return draw_by_x(metric, lines, table.sweep.figure, styles)
    return None


def metrics_to_draw(table: Table) -> list[Metric]:
    """What to draw: the measured scores of the test split; of validation in a table without them."""
    scores = [metric for metric in table.sweep.metrics if metric.key.startswith("test_")]
    scores = scores or [metric for metric in table.sweep.metrics if metric.key.startswith("valid_")]
    return [metric for metric in scores if any(line.measured for line in lines_with(table, metric))]


def lines_with(table: Table, metric: Metric) -> list[Line]:
    return [line for line in table.lines if metric.key in line.scores]


def draw_by_x(metric: Metric, lines: Sequence[Line], figure: Figure, styles: Styles) -> Plot:
    """The metric against the rows' x, a line for each group, the published numbers beside the measured ones."""
    lines = [line for line in lines if line.row.x is not None]
    groups: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda line: line.row.x or 0.0):
        groups.setdefault(line.row.group, []).append(line)
    by_table = dict.fromkeys(line.row.group for line in lines)
    drawn = {group: line_style(groups[group], styles) for group in by_table}

    def paint(axes: Axes) -> None:
        if figure.published_best:
            axes.span(*figure.published_best, INK)
        ends = []
        for group, style in drawn.items():
            theirs, ours = [], []
            for line in groups[group]:
                score, x = line.scores[metric.key], line.row.x or 0.0
                if score.comparable is not None and not line.row.dynamic:
                    told = f"{format_published(score.comparable, metric.key)}, published"
                    theirs.append((x, score.comparable, line, told))
                if score.mean is not None:
                    ours.append((x, score.mean, line, measured_tip(metric.key, score)))
            for points, dashed in ((theirs, True), (ours, False)):
                draw_line(axes, [point[:2] for point in points], style, dashed)
                for x, y, line, tip in points:
                    spread = None if dashed else line.scores[metric.key].deviation
                    draw_point(axes, x, y, styles[line.row.name], tip, spread, dashed)
            ends += [(*(ours or theirs)[-1][:2], group, style.colour)] if ours or theirs else []
        axes.x.ticks = {place: f"{place:g}" for line in lines if (place := line.row.x) is not None}
        label_ends(axes, ends)

    several = any(line.scores[metric.key].deviation is not None for line in lines)
    bars = ", with one standard deviation where a row has several seeds" if several else ""
    parts = [f"Full marks: measured{bars}"]
    shown = [line for line in lines if line.scores[metric.key].comparable is not None]
    if shown:
        left_out = ", without dynamic evaluation" if any(line.row.dynamic for line in shown) else ""
        parts.append(f"open marks and broken lines: published{left_out}")
    if figure.published_best:
        parts.append("grey: where the paper found the best")
    caption = f"{metric.label} against {figure.x_label}. {'; '.join(parts)}."
    panel = draw_panel(figure.x_label, metric.label, caption, paint)
    return Plot((panel,), tuple(drawn.items()))


def draw_effects(metric: Metric, lines: Sequence[Line], sweep: Sweep, styles: Styles) -> Plot | None:
    """How far each row of the group of `figure.base` is from that row, as bars; None where nothing is measured."""
    means = {line.row.name: line.scores[metric.key].mean for line in lines}
    base = next((line for line in lines if sweep.figure and line.row.name == sweep.figure.base), None)
    if base is None or (origin := means[base.row.name]) is None:
        return None
    effects = sorted(
        (mean - origin, line.row.label.removeprefix(f"{DOTS} "), styles[line.row.name])
        for line in lines
        if line is not base
        and line.row.group == base.row.group
        and (mean := means[line.row.name]) is not None
    )
    if not effects:
        return None
    differences = [difference for difference, *_ in effects]
    labels = [fill(label, LABEL_WIDTH) for _, label, _ in effects]
    low, high = min(0.0, *differences), max(0.0, *differences)
    room = 0.2 * (high - low) or 1.0  # for the numbers at the bars' ends

    def paint(axes: Axes) -> None:
        axes.bars(labels)
        axes.x.begin, axes.x.end = low - room, high + room
        for place, (difference, _, style) in enumerate(effects):
            text = signed(metric.key, difference)
            axes.bar(place, 0, difference, INK, 0.55, whose=whose(style, text))
            axes.word((difference, place), text, 3 if difference > 0 else -3)
        axes.upright(0, INK)

    better = {True: ", less is better", False: ", more is better", None: ""}[metric.lower_is_better]
    beside = format_number(metric.key, origin)
    x_label = f"difference from {beside}"
    caption = f"{metric.label}: how far each row is from “{base.row.label}”, {beside}{better}."
    tallest = max(label.count("\n") for label in labels)
    height = 42 + (15 + 6 * tallest) * len(labels)
    return Plot((draw_panel(x_label, "", caption, paint, height=height, left=173),), ())


def signed(key: str, difference: float) -> str:
    return ("+" if difference > 0 else "") + format_number(key, difference)


def draw_by_costs(metric: Metric, lines: Sequence[Line], styles: Styles) -> list[Plot]:
    """The metric against weights and against the time that the best run trained, a mark for each row."""
    points = [
        (label, line)
        for label, line in with_full_labels(lines)
        if line.parameters and line.scores[metric.key].mean is not None
    ]

    placed = set[str]()

    def paint(axes: Axes, places: Mapping[str, float], words: Words) -> None:
        for _, line in points:
            if (x := places.get(line.row.name)) is None:
                continue
            placed.add(line.row.name)
            score = line.scores[metric.key]
            tip = f"{measured_tip(metric.key, score)}, {words(x)}"
            draw_point(axes, x, score.mean or 0.0, styles[line.row.name], tip, score.deviation)

    panels = draw_costs(metric, [line for _, line in points], paint)
    legend = tuple((label, styles[line.row.name]) for label, line in points if line.row.name in placed)
    return [Plot(tuple(panels), legend)] if panels else []
