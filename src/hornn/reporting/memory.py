"""The figures of how far networks look back, from the part `memory` of their results (docs/memory.md)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hornn.reporting.panels import INK, Panel, Plot, Style, draw_panel, series_id
from hornn.reporting.row_styles import row_styles, with_full_labels
from hornn.reporting.tables import Table
from hornn.result import MEMORY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL, POOLED = "all", "pooled"
FLOOR = 1e-6  # of a gradient, relative to lag 1: what is below is not drawn
DASHES = ("-", "--", ":", "-.")  # of the parts of a state
STAGES = {
    "start": "before training",
    "during": "after epoch {epoch}",
    "after": "after training, epoch {epoch}",
}
Stage = Mapping[str, Any]


class Measured(NamedTuple):
    """A row whose best run was measured."""

    label: str
    style: Style
    memory: Mapping[str, Any]

    def stage(self, name: str) -> Stage | None:
        """The last stage of that name."""
        return next((stage for stage in reversed(self.memory["stages"]) if stage["stage"] == name), None)


def measured_rows(table: Table) -> list[Measured]:
    styles = row_styles(table.lines)
    return [
        Measured(label, styles[line.row.name], line.best.result[MEMORY])
        for label, line in with_full_labels(table.lines)
        if line.best and MEMORY in line.best.result
    ]


def draw_memory(table: Table, named: bool = False) -> list[Plot]:
    """Gradients by lag, known words, signals, ranges; nothing where nothing is measured.

    named: the panels say themselves which line is whose, for a page without a legend.
    """
    rows = measured_rows(table)
    if not rows:
        return []
    drawing = Drawing(f"{table.sweep.name}-memory", rows, named)
    groups = [
        [drawing.gradients(stage) for stage in ("after", "during", "start")],
        [drawing.known(), drawing.parts()],
        [drawing.pooled("after"), drawing.pooled("start"), drawing.saturation()],
        [drawing.ranges()],
    ]
    legend = tuple((row.label, row.style) for row in rows)
    plots = [Plot(tuple(filter(None, panels)), legend) for panels in groups]
    return [plot for plot in plots if plot.panels]


class Drawing(NamedTuple):
    """The panels of one table; None for one that nothing was measured for."""

    name: str
    rows: Sequence[Measured]
    named: bool

    def panel(
        self, key: str, x: str, y: str, caption: str, paint: Callable[["Axes"], None], **size: float
    ) -> Panel:
        def paint_all(axes: "Axes") -> None:
            paint(axes)
            if self.named:
                axes.legend(fontsize=6.5, framealpha=0, labelspacing=0.25)

        return draw_panel(f"{self.name}-{key}", x, y, caption, paint_all, **size)

    def at(self, stage: str) -> list[tuple[Measured, Stage]]:
        return [(row, found) for row in self.rows if (found := row.stage(stage)) is not None]

    def gradients(self, stage: str) -> Panel | None:
        """The median norm by lag relative to lag 1, with the quartiles as a band."""
        found = [(row, at["gradient"][ALL]) for row, at in self.at(stage) if ALL in at["gradient"]]
        found = [(row, norms) for row, norms in found if norms["q50"] and norms["q50"][0]]
        if not found:
            return None

        def paint(axes: "Axes") -> None:
            for row, norms in found:
                low, middle, high = (relative(norms[key], norms["q50"][0]) for key in ("q25", "q50", "q75"))
                lags = range(1, len(middle) + 1)
                axes.fill_between(lags, low, high, color=row.style.colour, alpha=0.1, linewidth=0)
                draw_curve(axes, row, middle)
            in_decades(axes, FLOOR)

        epochs = {at["epoch"] for _, at in self.at(stage)}
        when = STAGES[stage].format(epoch=epochs.pop()) if len(epochs) == 1 else f"{stage} training"
        caption = (
            f"How much of the gradient reaches k steps back, {when}: the median norm of d loss_t / d h_{{t-k}}, "
            "relative to k = 1. Bands: quartiles over the tokens t."
        )
        return self.panel(
            f"gradient-{stage}", "k, steps back", "norm of the gradient, relative", caption, paint
        )

    def parts(self) -> Panel | None:
        """The same after training for each part of states that have several."""
        found = [(row, at["gradient"]) for row, at in self.at("after") if len(at["gradient"]) > 2]
        if not found:
            return None

        def paint(axes: "Axes") -> None:
            for row, gradient in found:
                parts = [part for part in gradient if part != ALL]
                for part, dash in zip(parts, DASHES, strict=False):
                    draw_curve(axes, row, gradient[part]["q50"], dash, part)
            in_decades(axes, FLOOR / 1000)

        told = "; ".join(f"{row.label}: {', '.join(list(gradient)[1:])}" for row, gradient in found)
        caption = f"The median norm for each part of the state: full, broken and dotted lines in this order. {told}."
        return self.panel("parts", "k, steps back", "norm of the gradient", caption, paint)

    def known(self) -> Panel:
        """How much higher the perplexity is with k known words than with the whole text."""

        def paint(axes: "Axes") -> None:
            for row in self.rows:
                known, whole = row.memory["known"], row.memory["known"]["whole"]
                losses = [100 * (ppl / whole - 1) if ppl and whole else None for ppl in known["perplexity"]]
                draw_curve(axes, row, [loss if loss and loss > 0 else None for loss in losses])
            axes.set(xscale="log", yscale="log")
            axes.set_ylim(bottom=0.1)
            axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
            write_decades(axes)

        caption = (
            "What a network loses that knows the last k words alone: by how many percent its perplexity is above its "
            "own with the whole text. Dotted: 1 %, which defines the effective memory."
        )
        return self.panel("known", "k, known words", "perplexity above the whole text's, %", caption, paint)

    def pooled(self, stage: str) -> Panel | None:
        """The root mean square of the pooled feedback by step."""
        found = [(row, at["paths"][POOLED]) for row, at in self.at(stage) if POOLED in at["paths"]]
        if not found:
            return None

        def paint(axes: "Axes") -> None:
            for row, path in found:
                draw_curve(axes, row, path["rms_by_step"])

        when = "after training" if stage == "after" else "before training"
        caption = (
            f"The size (root mean square) of the pooled feedback by steps from the initial state, {when}."
        )
        return self.panel(f"pooled-{stage}", "step", "size of the feedback", caption, paint)

    def saturation(self) -> Panel:
        def paint(axes: "Axes") -> None:
            for row, at in self.at("after"):
                draw_curve(axes, row, [None if share is None else 100 * share for share in at["saturation"]])

        caption = "The share of units that are saturated by steps from the initial state, after training."
        return self.panel("saturation", "step", "saturated units, %", caption, paint)

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
        labels = [f"{row.label}: {path}" for row, path, *_ in bars]

        def paint(axes: "Axes") -> None:
            for place, (row, _, low, high) in enumerate(bars):
                (bar,) = axes.barh(place, high - low, left=low, color=row.style.colour, height=0.62)
                bar.set_gid(series_id(row.style.series) + f"{labels[place]}, {low:.2f} to {high:.2f}")
            axes.axvline(0, color=INK, linewidth=0.8)
            axes.set_yticks(range(len(bars)), labels, fontsize=7, parse_math=False)
            axes.set_ylim(len(bars) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")

        caption = (
            "The range of each path before the activation after training, from the 1st to the 99th percentile. Pooled "
            "is all feedback together, input the part of the input."
        )
        height = 0.8 + 0.16 * len(bars)
        name = f"{self.name}-ranges"
        return draw_panel(name, "value before the activation", "", caption, paint, height=height, left=0.48)


def draw_curve(
    axes: "Axes", row: Measured, y: Sequence[float | None], dash: str = "-", part: str = ""
) -> None:
    """A line through the numbers that are there, the first at 1; pointing at it names the row."""
    points = [(at, value) for at, value in enumerate(y, start=1) if value is not None]
    if points:
        name = f"{row.label}: {part}" if part else row.label
        (line,) = axes.plot(*zip(*points, strict=True), dash, color=row.style.colour, label=name)
        line.set(gid=series_id(row.style.series) + name, linewidth=1.4)


def relative(norms: Sequence[float | None], first: float) -> list[float]:
    """Norms in units of `first`; what is below the floor just below it, as a logarithm has no 0."""
    return [max((norm or 0.0) / first, FLOOR / 10) for norm in norms]


def in_decades(axes: "Axes", floor: float) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    axes.set_ylim(bottom=floor)
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_minor_locator(NullLocator())


def write_decades(axes: "Axes") -> None:
    """Whole decades, written out, on both axes."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=6))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())


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
