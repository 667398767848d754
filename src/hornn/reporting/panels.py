"""One panel of a figure, as SVG that takes its ink from the page. matplotlib is loaded when there is one to draw."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from hornn.reporting.numbers import format_number
from hornn.reporting.scores import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by most eyes, and at least 3 : 1 against the white and the dark ground of the page.
COLOURS = ("#0284c7", "#e8590c", "#2f9e44", "#d6336c", "#7950f2", "#a17d00", "#0c9a8d", "#8a6d5c")
MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚", "*": "★", "<": "◀", ">": "▶", "X": "✖"}
WIDTH = 4.8  # inches
MANY_LINES = 8  # more lines have no names at their ends
NAME, LETTER, LINE = 9.5, 5.1, 11.5  # points: the size of such a name, the widths of a letter and a line
INK = "#010203"  # stands for the page's own text colour until the figure is in the page


class Style(NamedTuple):
    """`series`: the places of the rows in their table that are drawn so, which are lit together."""

    colour: str
    marker: str
    series: tuple[int, ...] = ()

    @property
    def ink(self) -> str:
        """Its colour, on the page."""
        return "currentColor" if self.colour == INK else self.colour

    @property
    def symbol(self) -> str:
        return MARKERS[self.marker]


Styles = Mapping[str, Style]  # of rows, by their names


class Panel(NamedTuple):
    """`wide`: it holds much text, and takes the room of two."""

    svg: str
    caption: str
    wide: bool = False


class Plot(NamedTuple):
    """Panels side by side with one legend: pairs of a label and its style."""

    panels: tuple[Panel, ...]
    legend: tuple[tuple[str, Style], ...]


def nth_style(index: int) -> Style:
    """The style of the n-th line: 80 differ."""
    return Style(COLOURS[index % len(COLOURS)], list(MARKERS)[(index // len(COLOURS) + index) % len(MARKERS)])


def series_id(series: Sequence[int]) -> str:
    """An id for an artist of matplotlib: its SVG has it as `data-series`, by which it is lit."""
    return f"series|{' '.join(map(str, series))}|"


def draw_line(
    axes: "Axes", points: Sequence[tuple[float, float]], style: Style, dashed: bool = False
) -> None:
    """A line without marks."""
    if len(points) > 1:
        (line,) = axes.plot(*zip(*points, strict=True), "--" if dashed else "-", color=style.colour)
        line.set(gid=series_id(style.series), alpha=0.6 if dashed or style.colour == INK else 1.0)


def label_ends(axes: "Axes", ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Put the name of each line, in its colour, behind its end (x, y); names do not cover one another."""
    named = sorted((end for end in ends if end[2]), key=lambda end: end[1])
    if not 1 < len(named) <= MANY_LINES:
        return
    low, high = axes.get_xlim()
    width = 72 * axes.get_position().width * WIDTH
    share = 1 - min(0.4, (LETTER * max(len(name) for *_, name, _ in named) + 10) / width)
    is_log = axes.get_xscale() == "log"
    axes.set_xlim(low, low * (high / low) ** (1 / share) if is_log else low + (high - low) / share)
    axes.set_ylim(axes.get_ylim())
    scale = 72 / axes.figure.dpi
    last = -math.inf
    for x, y, name, colour in named:
        at = float(axes.transData.transform((x, y))[1]) * scale
        last = max(at, last + LINE)
        axes.annotate(
            name, (x, y), (7, last - at), textcoords="offset points", va="center", fontsize=NAME, color=colour
        )


def measured_tip(key: str, score: Score) -> str:
    """`106.3 ± 0.2, 3 seeds`."""
    spread = f" ± {format_number(key, score.deviation)}" if score.deviation is not None else ""
    count = len(score.values)
    return f"{format_number(key, score.mean)}{spread}, {count} seed{'s' * (count > 1)}"


def draw_point(
    axes: "Axes",
    x: float,
    y: float,
    style: Style,
    tip: str,
    spread: float | None = None,
    hollow: bool = False,
) -> None:
    """One mark with the bar of its seeds; `tip` is what the page says where someone points at it."""
    if spread:
        (bar,) = axes.plot((x, x), (y - spread, y + spread), color=style.colour)
        bar.set_gid(series_id(style.series))
    (mark,) = axes.plot(x, y, color=style.colour, marker=style.marker, linestyle="none")
    mark.set_gid(series_id(style.series) + tip)
    if hollow:
        mark.set(markerfacecolor="none", alpha=0.8)


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
    settings |= {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 10,
        "font.sans-serif": ["DejaVu Sans"],
    }
    with rc_context(settings):
        figure = Figure(figsize=(WIDTH, height), facecolor="none")
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
            text, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )  # savefig draws twice
    svg = shrink(re.sub(r'<g id="([^"]*)"', tag_group, text.getvalue()))
    named = f'<svg role="img" aria-label="{escape(caption)}" '
    return Panel(svg[svg.index("<svg") :].replace(INK, "currentColor").replace("<svg ", named, 1), caption)


def shrink(svg: str) -> str:
    """The same picture in 60 % of the bytes: places to a hundredth of a point, no turns by nothing, no indents."""
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)
    svg = re.sub(r' transform="rotate\(-0[^"]*"', "", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def tag_group(found: re.Match[str]) -> str:
    """What the page needs of a group's id; nothing refers to groups, and matplotlib's own ids are alike everywhere."""
    kind, _, rest = found[1].partition("|")
    series, _, tip = rest.partition("|")
    if kind != "series":
        return "<g"
    return f'<g data-series="{series}"' + (f' data-tip="{tip}"' if tip else "")
