"""One panel of a figure: the looks of its lines and marks, and its caption."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hornn.reporting.axes import Axes
from hornn.reporting.numbers import format_number
from hornn.reporting.scores import Score

# Told apart by most eyes, and at least 3 : 1 against the white and the dark ground of the page.
COLOURS = ("#0284c7", "#e8590c", "#2f9e44", "#d6336c", "#7950f2", "#a17d00", "#0c9a8d", "#8a6d5c")
# A mark and its path around the origin.
SHAPES = {
    "●": "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
    "■": "M-3 -3h6v6h-6z",
    "▲": "M0 -4l4 7h-8z",
    "◆": "M0 -4l4 4l-4 4l-4 -4z",
    "▼": "M0 4l4 -7h-8z",
    "✚": "M-4 -1.3h2.7v-2.7h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7z",
    "★": "M0 -4.5l1.2 3h3.2l-2.6 2l1 3.2l-2.8 -1.9l-2.8 1.9l1 -3.2l-2.6 -2h3.2z",
    "◀": "M-4 0l7 -4v8z",
    "▶": "M4 0l-7 -4v8z",
    "✖": "M-3.5 -2l1.5 -1.5l2 2l2 -2l1.5 1.5l-2 2l2 2l-1.5 1.5l-2 -2l-2 2l-1.5 -1.5l2 -2z",
}
MANY_LINES = 8  # more lines have no names at their ends
INK = "currentColor"  # the colour of the page's text


class Style(NamedTuple):
    """`series`: the places of the rows in their table that are drawn so, which are lit together."""

    colour: str
    symbol: str
    series: tuple[int, ...] = ()


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
    return Style(COLOURS[index % len(COLOURS)], list(SHAPES)[(index // len(COLOURS) + index) % len(SHAPES)])


def whose(style: Style, tip: str | None = None) -> dict[str, str]:
    """What an element of a figure says of itself: whose it is, and what the page says where someone points at it.

    tip: what the page says behind the name of the row, which it reads in the table; empty: the name alone.
    """
    told = {} if tip is None else {"data_tip": f": {tip}".rstrip()}
    return {"data_series": " ".join(map(str, style.series)), **told}


def draw_line(axes: Axes, points: Sequence[tuple[float, float]], style: Style, dashed: bool = False) -> None:
    """A line without marks."""
    if len(points) > 1:
        faint = {"opacity": "0.6"} if style.colour == INK else {}  # its marks have colours
        axes.line(points, style.colour, "--" if dashed else "-", whose={**whose(style), **faint})


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Put the name of each line right of its end (x, y), where there are several and few."""
    named = [end for end in ends if end[2]]
    axes.ends = named if 1 < len(named) <= MANY_LINES else []


def measured_tip(key: str, score: Score) -> str:
    """`106.3 ± 0.2, 3 seeds`."""
    spread = f" ± {format_number(key, score.deviation)}" if score.deviation is not None else ""
    count = len(score.values)
    return f"{format_number(key, score.mean)}{spread}, {count} seed{'s' * (count > 1)}"


def draw_point(
    axes: Axes,
    x: float,
    y: float,
    style: Style,
    tip: str,
    spread: float | None = None,
    hollow: bool = False,
) -> None:
    """One mark with the bar of its seeds; `tip` is what the page says where someone points at it."""
    if spread:
        axes.line(((x, y - spread), (x, y + spread)), style.colour, whose=whose(style))
    axes.mark((x, y), SHAPES[style.symbol], style.colour, hollow, whose=whose(style, tip))


def draw_panel(
    x_label: str,
    y_label: str,
    caption: str,
    paint: Callable[[Axes], None],
    height: float = 245,
    left: float = 58,
) -> Panel:
    """One panel, `height` points high, its axes beginning `left` points from its edge."""
    axes = Axes(x_label, y_label)
    paint(axes)
    return Panel(axes.svg(caption, height, left), caption)
