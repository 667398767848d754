"""The figures of how far networks look back, from the part `memory` of their results (docs/memory.md)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hornn.reporting.axes import Axes
from hornn.reporting.panels import INK, SHAPES, Panel, Plot, Style, draw_panel, whose
from hornn.reporting.row_styles import row_styles, with_full_labels
from hornn.reporting.svg import shortened
from hornn.reporting.tables import Table
from hornn.result import MEMORY

ALL, POOLED = "all", "pooled"
LEAST_LOSS = 0.1  # %, that is drawn
FLOOR = 1e-6  # of a gradient, relative to lag 1: what is below is not drawn
SOLID = "-"
SIGNS = {SOLID: "───", "--": "─ ─", ":": "· · ·", "-.": "─ ·"}  # in a legend
DASHES = tuple(SIGNS)  # of the rows of one colour, or of the parts of a state
STAGES = {
    "start": "before training",
    "during": "after epoch {epoch}",
    "after": "after training, epoch {epoch}",
}
Stage = Mapping[str, Any]


class Measured(NamedTuple):
    """A row whose best run was measured. `dash`: of its lines."""

    label: str
    style: Style
    memory: Mapping[str, Any]
    dash: str = SOLID

    def stage(self, name: str) -> Stage | None:
        """The last stage of that name."""
        return next((stage for stage in reversed(self.memory["stages"]) if stage["stage"] == name), None)


def measured_rows(table: Table) -> list[Measured]:
    """Colour by colour, as lines of one colour differ in their dashes."""
    styles = row_styles(table.lines)
    by_colour: dict[str, list[Measured]] = {}
    for label, line in with_full_labels(table.lines):
        if line.best and MEMORY in line.best.result:
            style = styles[line.row.name]
            alike = by_colour.setdefault(style.colour, [])
            alike.append(Measured(label, style, line.best.result[MEMORY], DASHES[len(alike) % len(DASHES)]))
    return [row for rows in by_colour.values() for row in rows]


def draw_memory(table: Table, named: bool = False) -> list[Plot]:
    """Gradients by lag, known words, signals, ranges; nothing where nothing is measured.

    named: the panels say themselves which line is whose, for a page without a legend.
    """
    rows = measured_rows(table)
    if not rows:
        return []
    drawing = Drawing(rows, named)
    groups = [
        [drawing.gradients(stage) for stage in ("after", "during", "start")],
        [drawing.known(), drawing.parts()],
        [drawing.pooled("after"), drawing.pooled("start"), drawing.saturation()],
        [drawing.ranges()],
    ]
    legend = tuple(
        (row.label, row.style._replace(symbol=f"{row.style.symbol} {SIGNS[row.dash]}")) for row in rows
    )
    plots = [Plot(tuple(filter(None, panels)), legend) for panels in groups]
    return [plot for plot in plots if plot.panels]


class Drawing(NamedTuple):
    """The panels of one table; None for one that nothing was measured for."""

    rows: Sequence[Measured]
    named: bool

    def panel(self, x: str, y: str, caption: str, paint: Callable[[Axes], None]) -> Panel:
        def paint_all(axes: Axes) -> None:
            paint(axes)
            if self.named:
                axes.legend = [
                    (row.label, row.style.colour, row.dash, SHAPES[row.style.symbol]) for row in self.rows
                ]

        return draw_panel(x, y, caption, paint_all)

    def at(self, stage: str) -> list[tuple[Measured, Stage]]:
        return [(row, found) for row in self.rows if (found := row.stage(stage)) is not None]

    def gradients(self, stage: str) -> Panel | None:
        """The median norm by lag relative to lag 1, with the quartiles as a band."""
        found = [(row, at["gradient"][ALL]) for row, at in self.at(stage) if ALL in at["gradient"]]
        found = [(row, norms) for row, norms in found if norms["q50"] and norms["q50"][0]]
        if not found:
            return None

        def paint(axes: Axes) -> None:
            for row, norms in found:
                low, middle, high = (relative(norms[key], norms["q50"][0]) for key in ("q25", "q50", "q75"))
                if row.dash == SOLID:
                    axes.band([*enumerate(low, start=1)], [*enumerate(high, start=1)], row.style.colour)
                draw_curve(axes, row, middle, FLOOR)
            axes.y.log, axes.y.begin = True, FLOOR

        epochs = {at["epoch"] for _, at in self.at(stage)}
        when = STAGES[stage].format(epoch=epochs.pop()) if len(epochs) == 1 else f"{stage} training"
        caption = (
            f"How much of the gradient reaches k steps back, {when}: the median norm of d loss_t / d h_{{t-k}}, "
            "relative to k = 1. Bands, of full lines: quartiles over the tokens t."
        )
        return self.panel("k, steps back", "norm of the gradient, relative", caption, paint)

    def parts(self) -> Panel | None:
        """How much of the gradient reaches k steps back after training, for each part of states that have several.

        Dashes tell the parts here, so that of each colour the first row is drawn.
        """
        found = [
            (row, at["gradient"])
            for row, at in self.at("after")
            if len(at["gradient"]) > 2 and row.dash == SOLID
        ]
        if not found:
            return None

        def paint(axes: Axes) -> None:
            for row, gradient in found:
                parts = [part for part in gradient if part != ALL]
                for part, dash in zip(parts, DASHES, strict=False):
                    draw_curve(axes, row, gradient[part]["q50"], FLOOR / 1000, dash, part)
            axes.y.log, axes.y.begin = True, FLOOR / 1000

        told = "; ".join(f"{row.label}: {', '.join(list(gradient)[1:])}" for row, gradient in found)
        caption = f"The median norm for each part of the state: full, broken and dotted lines in this order. {told}."
        return self.panel("k, steps back", "norm of the gradient", caption, paint)

    def known(self) -> Panel:
        """How much higher the perplexity is with k known words than with the whole text."""

        def paint(axes: Axes) -> None:
            for row in self.rows:
                known, whole = row.memory["known"], row.memory["known"]["whole"]
                losses = [100 * (ppl / whole - 1) if ppl and whole else None for ppl in known["perplexity"]]
                draw_curve(axes, row, [loss if loss and loss > 0 else None for loss in losses], LEAST_LOSS)
            axes.x.log = axes.y.log = True
            axes.y.begin = LEAST_LOSS
            axes.level(1, INK, width=0.8)

        caption = (
            "What a network loses that knows the last k words alone: by how many percent its perplexity is above its "
            "own with the whole text. Dotted: 1 %, which defines the effective memory."
        )
        return self.panel("k, known words", "perplexity above the whole text's, %", caption, paint)

    def pooled(self, stage: str) -> Panel | None:
        """The root mean square of the pooled feedback by step."""
        found = [(row, at["paths"][POOLED]) for row, at in self.at(stage) if POOLED in at["paths"]]
        if not found:
            return None

        def paint(axes: Axes) -> None:
            for row, path in found:
                draw_curve(axes, row, path["rms_by_step"])

        when = "after training" if stage == "after" else "before training"
        caption = (
            f"The size (root mean square) of the pooled feedback by steps from the initial state, {when}."
        )
        return self.panel("step", "size of the feedback", caption, paint)

    def saturation(self) -> Panel:
        def paint(axes: Axes) -> None:
            for row, at in self.at("after"):
                draw_curve(axes, row, [None if share is None else 100 * share for share in at["saturation"]])

        caption = "The share of units that are saturated by steps from the initial state, after training."
        return self.panel("step", "saturated units, %", caption, paint)

    def ranges(self) -> Panel | None:
        """A bar for each path, in its row's colour."""
        bars = [
            (row, path, values["low"], values["high"])
            for row, at in self.at("after")
            for path, values in at["paths"].items()
            if values["low"] is not None and values["high"] is not None
        ]
        if not bars:
            return None

        def paint(axes: Axes) -> None:
            axes.bars([f"{shortened(row.label, 100, 7)}: {path}" for row, path, *_ in bars], size=7)
            for place, (row, path, low, high) in enumerate(bars):
                tip = f"{path}, {low:.2f} to {high:.2f}"
                axes.bar(place, low, high, row.style.colour, whose=whose(row.style, tip))
            axes.upright(0, INK)

        caption = (
            "The range of each path before the activation after training, from the 1st to the 99th percentile. Pooled "
            "is all feedback together, input the part of the input."
        )
        height = 58 + 11.5 * len(bars)
        return draw_panel("value before the activation", "", caption, paint, height=height, left=166)


def draw_curve(
    axes: Axes, row: Measured, y: Sequence[float | None], floor: float = 0.0, dash: str = "", part: str = ""
) -> None:
    """A line through the numbers that are there, the first at 1; pointing at it names the row.

    The row's mark stands at its last point above the floor: colours alone are not told apart by all eyes.
    """
    points = [(at, value) for at, value in enumerate(y, start=1) if value is not None]
    if points:
        axes.line(points, row.style.colour, dash or row.dash, whose=whose(row.style, part))
    if seen := [point for point in points if point[1] > floor]:
        axes.mark(seen[-1], SHAPES[row.style.symbol], row.style.colour, whose=whose(row.style))


def relative(norms: Sequence[float | None], first: float) -> list[float]:
    """Norms in units of `first`; what is below the floor just below it, as a logarithm has no 0."""
    return [max((norm or 0.0) / first, FLOOR / 10) for norm in norms]


def factor_notes(table: Table) -> list[str]:
    """What learned factors became, a sentence for each layer that has some, and the words of the units at both ends."""
    notes = []
    for row in measured_rows(table):
        for layer in row.memory["factors"]:
            values = layer["values"]
            spread = f"from {values[0]:.3f} to {values[-1]:.3f}" if len(values) > 1 else f"{values[0]:.3f}"
            notes.append(f"{row.label}, learned factors of layer {layer['layer']}: {spread}.")
            notes += [
                f"{row.label}, the unit of factor {unit['factor']:.3f} reads most of: {', '.join(unit['words'])}."
                for unit in layer["units"]
            ]
    return notes
