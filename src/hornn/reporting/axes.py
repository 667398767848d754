"""Axes with round numbers, and between them lines, marks, bars and words, as SVG text."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from hornn.reporting.svg import element, picture, shortened

WIDTH = 345.6  # points
SIZE, SMALL, LEGEND = 10.0, 8.0, 8.5  # of letters: along an axis, beside bars, in a legend
HEAD, FOOT, RIGHT = 7.0, 34.0, 7.0  # from the edges of the picture to the axes
ROOM = 0.05  # of an axis, between its ends and what is drawn
# For the name at a line's end: its size, the width of a letter, its height.
NAME, LETTER, LINE = (9.5, 5.1, 11.5)
MARK = 17.0  # from the last point to the names of lines: room for a mark of the line's colour
BAR = 0.62  # the height of a bar; their places are 1 apart
BEYOND = 2000  # further than any edge
HUGE = 1e100  # of a stranger's numbers
DASHES = {"-": "", "--": "5.5 2.4", ":": "1.5 2.5", "-.": "9.6 2.4 1.5 2.4"}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+")

Point = tuple[float, float]
At = Callable[[float], float]
Look = dict[str, float | str]
NOBODY: Mapping[str, str] = {}
Draw = Callable[[At, At], str]  # an element, once it is known where an x and where a y is


class Scale:
    """The values along one side. Its ends and its `ticks`, value -> words, follow from what is drawn unless set."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.log = False
        self.begin: float | None = None
        self.end: float | None = None
        self.ticks: Mapping[float, str] | None = None
        self.size = SIZE
        self.drawn: list[float] = []
        self.low, self.high = 0.0, 1.0

    def fit(self) -> None:
        """Find the ends `low` and `high`; of a logarithmic axis, they are logarithms."""
        found = [self.scaled(value) for value in self.drawn if value > 0 or not self.log] or [0.0, 1.0]
        low, high = min(found), max(found)
        differ = high - low > max(abs(low), abs(high), 1 / HUGE) / 1e12
        room = ROOM * (high - low) if differ else ROOM * abs(low) or 1.0
        self.low = low - room if self.begin is None else self.scaled(self.begin)
        self.high = high + room if self.end is None else self.scaled(self.end)

    def scaled(self, value: float) -> float:
        """A logarithmic axis has no 0: it is far below."""
        limited = min(max(value, 1 / HUGE if self.log else -HUGE), HUGE)
        return math.log10(limited) if self.log else limited

    def share(self, value: float) -> float:
        """Where a value is: 0 at the beginning of the axis, 1 at its end."""
        return (self.scaled(value) - self.low) / (self.high - self.low)

    def marked(self) -> Mapping[float, str]:
        if self.ticks is not None:
            return self.ticks
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        values = round_numbers(low, high, log=self.log)
        return dict(zip(values, tick_texts(values), strict=True))


class Axes:
    """What is drawn along two axes; `svg` writes it once all is known.

    whose: attributes of the element, as they are written.
    """

    def __init__(self, x_label: str, y_label: str) -> None:
        self.x, self.y = Scale(x_label), Scale(y_label)
        self.inside: list[Draw] = []  # cut off at the axes
        self.over: list[Draw] = []
        self.has_bars = False
        self.ends: list[tuple[float, float, str, str]] = []  # of lines: (x, y, name, colour)
        self.legend: list[tuple[str, str, str, str]] = []  # (name, colour, dash, shape of its mark)

    def hold(self, x: Sequence[float], y: Sequence[float]) -> None:
        """See to it that the axes reach to these values."""
        self.x.drawn += x
        self.y.drawn += y

    def line(
        self,
        points: Sequence[Point],
        colour: str,
        dash: str = "-",
        whose: Mapping[str, str] = NOBODY,
    ) -> None:
        """A line through points. dash: a key of `DASHES`."""
        self.hold([x for x, _ in points], [y for _, y in points])
        look = stroke(colour, dash)
        self.inside.append(
            lambda x, y: element("path", d=path_of(points, x, y), fill="none", **look, **whose)
        )

    def mark(
        self, at: Point, shape: str, colour: str, hollow: bool = False, whose: Mapping[str, str] = NOBODY
    ) -> None:
        """shape: a path around the origin."""
        self.hold(at[:1], at[1:])
        ink = {"fill": "none", "stroke": colour} if hollow else {"fill": colour}

        def draw(x: At, y: At) -> str:
            return element(
                "path", d=shape, transform=f"translate({x(at[0]):.1f} {y(at[1]):.1f})", **ink, **whose
            )

        self.inside.append(draw)

    def band(self, low: Sequence[Point], high: Sequence[Point], colour: str) -> None:
        """The area between two lines."""
        edge = [*low, *reversed(high)]
        self.hold([x for x, _ in edge], [y for _, y in edge])
        look: Look = {"fill": colour, "fill_opacity": "0.1"}
        self.inside.append(lambda x, y: element("path", d=path_of(edge, x, y), **look))

    def span(self, begin: float, end: float, colour: str) -> None:
        """The area from one x to another."""
        self.hold((begin, end), ())
        look: Look = {"y": 0, "height": BEYOND, "fill": colour, "fill_opacity": "0.08"}
        self.inside.append(lambda x, y: element("rect", x=x(begin), width=x(end) - x(begin), **look))

    def level(self, value: float, colour: str, width: float = 1.5, whose: Mapping[str, str] = NOBODY) -> None:
        """A dotted line at a y, from end to end, or to where the names of lines begin."""
        self.hold((), (value,))
        look: Look = {"x1": 0, **stroke(colour, ":", width)}

        def draw(x: At, y: At) -> str:
            end = x(max(self.x.drawn)) if self.ends else BEYOND
            return element("line", x2=end, y1=y(value), y2=y(value), **look, **whose)

        self.inside.append(draw)

    def upright(self, value: float, colour: str) -> None:
        """A line at an x, from end to end."""
        self.hold((value,), ())
        look: Look = {"y1": 0, "y2": BEYOND, **stroke(colour, "-", 0.8)}
        self.inside.append(lambda x, y: element("line", x1=x(value), x2=x(value), **look))

    def bars(self, labels: Sequence[str], size: float = SMALL) -> None:
        """Make the y axis one of bars: each at the index of its label, from the top down."""
        self.has_bars = True
        self.y.ticks, self.y.size = dict(enumerate(labels)), size
        self.y.begin, self.y.end = len(labels) - 0.5, -0.5

    def bar(
        self,
        place: int,
        begin: float,
        end: float,
        colour: str,
        opacity: float = 1,
        whose: Mapping[str, str] = NOBODY,
    ) -> None:
        self.hold((begin, end), ())

        def draw(x: At, y: At) -> str:
            left, right = sorted((x(begin), x(end)))
            top, bottom = y(place - BAR / 2), y(place + BAR / 2)
            area = {"x": left, "y": top, "width": right - left, "height": bottom - top}
            return element("rect", **area, fill=colour, fill_opacity=f"{opacity:g}", **whose)

        self.inside.append(draw)

    def word(self, at: Point, text: str, shift: float) -> None:
        """A word beside a point, `shift` points to the right of it; below 0, to the left."""
        look: Look = {"font_size": SMALL, "text_anchor": "end" if shift < 0 else "start"}
        self.over.append(lambda x, y: element("text", text, x=x(at[0]) + shift, y=y(at[1]) + 3, **look))

    def svg(self, name: str, height: float, left: float) -> str:
        """The picture, `WIDTH` by `height` points, and higher where words below the x axis or a legend need room.

        name: for those who do not see it. left: where the axes begin.
        """
        self.x.fit()
        self.y.fit()
        right, foot = WIDTH - RIGHT, height - FOOT
        if longest := max((len(name) for *_, name, _ in self.ends), default=0):
            share = 1 - min(0.4, (LETTER * longest + MARK) / (right - left))
            self.x.high = self.x.low + (self.x.high - self.x.low) / share

        def x(value: float) -> float:
            return left + (right - left) * self.x.share(value)

        def y(value: float) -> float:
            return foot - (foot - HEAD) * self.y.share(value)

        below = max((text.count("\n") for text in self.x.marked().values()), default=0)
        bottom = height + LINE * below
        window = f'x="{left:.1f}" y="{HEAD:g}" width="{right - left:.1f}" height="{foot - HEAD:.1f}"'
        view = f"{left:.1f} {HEAD:g} {right - left:.1f} {foot - HEAD:.1f}"
        parts = [*self.sides(x, y, left, foot, bottom), f'<svg {window} viewBox="{view}">']
        parts += [draw(x, y) for draw in self.inside]
        parts += ["</svg>", *(draw(x, y) for draw in self.over)]
        parts += self.names(x, y)
        for text, colour, dash, shape in self.legend:
            bottom += 1.4 * LEGEND
            middle = f"translate({left + 12:.1f} {bottom - 7:.1f})"
            parts += [
                element("line", x1=left, x2=left + 24, y1=bottom - 7, y2=bottom - 7, **stroke(colour, dash)),
                element("path", d=shape, transform=middle, fill=colour),
                element("text", text, x=left + 29, y=bottom - 4, font_size=LEGEND),
            ]
        return picture(name, WIDTH, bottom, parts)

    def names(self, x: At, y: At) -> list[str]:
        """The names of lines, right of all that is drawn, each behind a mark of its line's colour.

        They have the colour of the text, as a line's own is too light to be read. A way leads there from a line that
        goes on to the last x; from one that ends before, it would look like what was measured.
        """
        parts, last, last_x = [], math.inf, max(self.x.drawn, default=0)
        for x_end, y_end, text, colour in sorted(self.ends, key=lambda end: end[1]):
            last = min(y(y_end), last - LINE)
            column = x(last_x) + MARK
            if x_end == last_x:
                way = f"M{x(x_end):.1f} {y(y_end):.1f}L{column - 10:.1f} {last:.1f}"
                parts.append(element("path", d=way, **stroke(colour, ":", 0.8)))
            mark = f"M{column - 10:.1f} {last:.1f}H{column - 3:.1f}"
            parts += [
                element("path", d=mark, **stroke(colour, "-", 3)),
                element(
                    "text",
                    shortened(text, WIDTH - RIGHT - column, NAME),
                    x=column,
                    y=last + 3,
                    font_size=NAME,
                ),
            ]
        return parts

    def sides(self, x: At, y: At, left: float, foot: float, bottom: float) -> list[str]:
        """The axes themselves: grid, edges, ticks and labels."""
        right, x_ticks, y_ticks = WIDTH - RIGHT, self.x.marked(), self.y.marked()
        grid = [f"M{x(at):.1f} {HEAD:g}V{foot:.1f}" for at in x_ticks]
        edges = f"M{left:.1f} {foot:.1f}H{right:.1f}"
        if not self.has_bars:
            grid += [f"M{left:.1f} {y(at):.1f}H{right:.1f}" for at in y_ticks]
            edges += f"M{left:.1f} {HEAD:g}V{foot:.1f}"
        thin = stroke("currentColor", "-", 0.8)
        parts = [
            element("path", d="".join(grid), stroke_opacity="0.15", **thin),
            element("path", d=edges, fill="none", **thin),
        ]
        for at, words in x_ticks.items():
            parts += lines_of_text(words, x(at), foot + 13, self.x.size, LINE, "middle")
        for at, words in y_ticks.items():
            size = self.y.size
            first = y(at) + 0.35 * size - 0.55 * size * words.count("\n")
            parts += lines_of_text(words, left - 5, first, size, 1.1 * size, "end")
        turned = f"translate(11 {(HEAD + foot) / 2:.1f}) rotate(-90)"
        parts += lines_of_text(self.x.label, (left + right) / 2, bottom - 6, SIZE, LINE, "middle")
        return [*parts, element("text", self.y.label, transform=turned, font_size=SIZE, text_anchor="middle")]


def lines_of_text(text: str, x: float, y: float, size: float, line: float, anchor: str) -> list[str]:
    """Lines, one below the other."""
    return [
        element("text", words, x=x, y=y + line * n, font_size=size, text_anchor=anchor)
        for n, words in enumerate(text.split("\n"))
    ]


def stroke(colour: str, dash: str, width: float = 1.5) -> Look:
    """How a line looks."""
    pattern = {"stroke_dasharray": DASHES[dash]} if DASHES[dash] else {}
    return {"stroke": colour, "stroke_width": width, **pattern}


def path_of(points: Sequence[Point], x: At, y: At) -> str:
    """Through points, each as its way from the one before: two thirds of the letters that places would take.

    Points are left out where the line without them passes within a fifth of a pixel.
    """
    at = [(10 * x(a), 10 * y(b)) for a, b in points]
    kept, passed = at[:1], at[1:1]
    for here, after in pairwise(at[1:]):
        passed.append(here)
        if any(distance(point, kept[-1], after) > 2 for point in passed):
            kept.append(here)
            passed = []
    at = [(round(a), round(b)) for a, b in [*kept, *at[1:][-1:]]]
    ways = [f"{(c - a) / 10:g} {(d - b) / 10:g}" for (a, b), (c, d) in pairwise(at)]
    return f"M{at[0][0] / 10:.1f} {at[0][1] / 10:.1f}" + (f"l{' '.join(ways)}" if ways else "")


def distance(point: Point, start: Point, end: Point) -> float:
    """The distance of a point from the line that begins and ends at two others."""
    a, b = point[0] - start[0], point[1] - start[1]
    c, d = end[0] - start[0], end[1] - start[1]
    share = min(max((a * c + b * d) / (c * c + d * d or 1.0), 0.0), 1.0)
    return math.hypot(a - share * c, b - share * d)


def round_numbers(low: float, high: float, most: int = 6, log: bool = False) -> list[float]:
    """Round numbers between these two, about as many as `most`; over much of a logarithmic axis, by powers of ten."""
    if log and high / low > 8:
        factors = (1,) if high / low > 300 else (1, 2, 5)
        powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        found = [factor * 10.0**power for power in powers for factor in factors]
        found = [value for value in found if low <= value <= high]
        return found[:: math.ceil(len(found) / 8)]
    least = (high - low) / most or 1.0
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return [step * index for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_texts(values: Sequence[float]) -> list[str]:
    """Each in as many digits as tell it from the next; all as powers, such as `10⁻⁶`, where one of them needs that."""
    step = min((after - value for value, after in pairwise(values)), default=0.0)
    digits = math.floor(math.log10(max(map(abs, values)) / step)) + 2 if step > 0 else 0
    digits = min(max(digits, 6), 15)  # no float has more
    texts = [f"{value:.{digits}g}" for value in values]
    return [power_text(value, digits) for value in values] if any("e" in text for text in texts) else texts


def power_text(value: float, digits: int) -> str:
    """`2.5·10⁷`."""
    if not value:
        return "0"
    factor, _, power = f"{value:.{digits - 1}e}".partition("e")
    factor = factor.rstrip("0").rstrip(".")
    return f"{'' if factor == '1' else f'{factor}·'}10{str(int(power)).translate(SUPERSCRIPTS)}"
