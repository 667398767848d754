"""One panel of a figure, as SVG that takes its ink from the page. matplotlib is loaded when there is one to draw."""

import io
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by most eyes, on white and on black.
COLOURS = ("#0284c7", "#e8590c", "#2f9e44", "#c2255c", "#7950f2", "#b08900", "#0c9a8d", "#8a6d5c")
MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "<": "◀", ">": "▶"}
INK = "#010203"  # stands for the page's own text colour until the figure is in the page


class Style(NamedTuple):
    colour: str
    marker: str

    @property
    def symbol(self) -> str:
        return MARKERS[self.marker]


class Panel(NamedTuple):
    svg: str
    caption: str


class Plot(NamedTuple):
    """Panels side by side with one legend: pairs of a label and its style."""

    panels: tuple[Panel, ...]
    legend: tuple[tuple[str, Style], ...]


def nth_style(index: int) -> Style:
    """The style of the n-th line: 56 differ."""
    return Style(COLOURS[index % len(COLOURS)], list(MARKERS)[(index // len(COLOURS) + index) % len(MARKERS)])


def draw_panel(
    name: str,
    x_label: str,
    y_label: str,
    caption: str,
    paint: Callable[["Axes"], None],
    log: bool = False,
    height: float = 3.4,
    left: float = 0.17,
) -> Panel:
    """One panel, 4.8 by `height` inches, its axes beginning at `left` of its width.

    `name` keeps the ids inside of the SVG apart from the ids of other figures on the page.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
    settings: Any = dict.fromkeys(parts, INK)
    settings |= {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 10}
    with rc_context(settings):
        figure = Figure(figsize=(4.8, height), facecolor="none")
        below, above = 0.476 / height, 0.102 / height
        axes = figure.add_axes((left, below, 0.98 - left, 1 - below - above), facecolor="none")
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.locator_params(nbins=5)
        axes.grid(alpha=0.15)
        axes.spines[["top", "right"]].set_visible(False)
        paint(axes)
        if log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_formatter(ScalarFormatter())
            axes.yaxis.set_minor_locator(NullLocator())
        text = io.StringIO()
        FigureCanvasSVG(figure).print_svg(
            text, metadata={"Date": None, "Creator": None}
        )  # savefig draws twice
    svg = re.sub(
        r'<g id="[^"]*"', "<g", text.getvalue()
    )  # nothing refers to groups, and they all have one name
    named = f'<svg role="img" aria-label="{escape(caption)}" '
    return Panel(svg[svg.index("<svg") :].replace(INK, "currentColor").replace("<svg ", named, 1), caption)
