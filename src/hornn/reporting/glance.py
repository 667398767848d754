"""All tables at a glance: a dot for each published number and one for the measured number beside it, by paper."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from hornn.reporting.axes import round_numbers
from hornn.reporting.numbers import UNVERIFIED_SIGN, format_number, format_published
from hornn.reporting.panels import COLOURS, Panel
from hornn.reporting.run_data import address
from hornn.reporting.scores import TEST_SCORES
from hornn.reporting.svg import element, picture, shortened
from hornn.reporting.tables import Table

COLUMN, GAP, PITCH, SIZE = 420, 24, 17, 11.5
LABELS, PLOT = 188, 128  # widths within a column: a row's label, its dots; its numbers take the rest
HEADING, TITLE, AXIS = 30, 24, 26  # heights: a paper's name, a table's title, the numbers of its axis
BETTER, WORSE = COLOURS[0], COLOURS[1]
NAME = "Published and measured numbers of all tables"


class Dots(NamedTuple):
    """A row with both numbers."""

    name: str
    label: str
    published: float
    measured: float
    better: bool
    verified: bool
    dynamic: bool


class Strip(NamedTuple):
    """The rows of a table with both numbers of one metric."""

    name: str
    title: str
    metric: str
    unit: str
    rows: tuple[Dots, ...]

    @property
    def height(self) -> float:
        return TITLE + PITCH * len(self.rows) + AXIS


def draw_glance(tables: Iterable[Table]) -> Panel | None:
    """The picture, of two columns; None where no row has both numbers.

    Each table has a logarithmic axis of its own. A run that stands in several tables of a paper is shown once.
    """
    papers = strips_by_paper(tables)
    if not papers:
        return None
    columns = split_in_two(papers)
    parts = [
        draw_column(names, papers, number * (COLUMN + GAP), 40.0) for number, names in enumerate(columns)
    ]
    width = len(columns) * COLUMN + (len(columns) - 1) * GAP
    elements = legend(len(columns) > 1) + [element for elements, _ in parts for element in elements]
    return Panel(picture(NAME, width, max(bottom for _, bottom in parts) + 4, elements), describe(papers))


def draw_glance_in_parts(tables: Iterable[Table]) -> tuple[list[str], str]:
    """The glance as a picture for each column, which a page may put side by side or one below the other; its caption.

    Tables and rows lead to their views of the page.
    """
    papers = strips_by_paper(tables)
    pictures: list[str] = []
    for names in split_in_two(papers):
        first = [] if pictures else legend(wide=False)
        elements, bottom = draw_column(names, papers, 0, 60.0 if first else 0.0, linked=True)
        name = f"{NAME}: {', '.join(names)}"
        pictures.append(picture(name, COLUMN, bottom + 4, first + elements, role="group"))
    return pictures, describe(papers)


def split_in_two(papers: dict[str, list[Strip]]) -> list[list[str]]:
    """The papers of each column, the longest first, each where there is more room."""
    heights: list[float] = [0.0, 0.0]
    columns: list[list[str]] = [[], []]
    for paper in sorted(papers, key=lambda paper: -sum(strip.height for strip in papers[paper])):
        column = heights.index(min(heights))
        columns[column].append(paper)
        heights[column] += HEADING + sum(strip.height for strip in papers[paper])
    return [names for names in columns if names]


def draw_column(
    names: Sequence[str], papers: dict[str, list[Strip]], left: float, y: float, linked: bool = False
) -> tuple[list[str], float]:
    """These papers below one another from y on, and where they end."""
    elements = []
    for paper in names:
        elements.append(element("text", paper, x=left, y=y + 20, font_size=15, font_weight="600"))
        y += HEADING
        for strip in papers[paper]:
            elements += draw_strip(strip, left, y, linked)
            y += strip.height
    return elements, y


def strips_by_paper(tables: Iterable[Table]) -> dict[str, list[Strip]]:
    papers: dict[str, list[Strip]] = {}
    shown: set[tuple[str, float]] = set()
    for table in sorted(tables, key=lambda table: (-len(table.compared), table.sweep.name)):
        paper = table.paper
        for metric in table.sweep.metrics:
            if metric.key not in TEST_SCORES:
                continue
            rows = []
            for line in table.lines:
                score = line.scores.get(metric.key)
                published = score.published if score else None
                theirs = score.comparable if score else None
                if score is None or score.mean is None or published is None or theirs is None:
                    continue
                if min(score.mean, theirs) <= 0:  # which has no place on a logarithmic axis
                    continue
                mark = (line.row.identity, theirs)  # a run may stand in tables of two papers
                if mark not in shown:
                    shown.add(mark)
                    ours = as_printed(score.mean, theirs)
                    better = ours < theirs if metric.lower_is_better else ours > theirs
                    signs = (better, published.verified, line.row.dynamic)
                    rows.append(Dots(line.row.name, line.row.label, theirs, score.mean, *signs))
            if rows:
                strip = Strip(table.sweep.name, table.short_title, metric.key, metric.label, tuple(rows))
                papers.setdefault(paper, []).append(strip)
    return papers


def as_printed(value: float, like: float) -> float:
    """The value to as many decimals as another one has."""
    return round(value, -int(Decimal(str(like)).as_tuple().exponent))


def legend(wide: bool) -> list[str]:
    parts = (
        ("published", "none", "currentColor"),
        ("measured, better", BETTER, BETTER),
        ("measured, worse or equal", WORSE, WORSE),
    )
    elements, x = [], 6.0
    for text, fill, stroke in parts:
        elements.append(element("circle", cx=x, cy=12, r=4, fill=fill, stroke=stroke, stroke_width=1.5))
        elements.append(element("text", text, x=x + 10, y=16, font_size=SIZE))
        x += 34 + 6.2 * len(text)
    x, y = (x, 12) if wide else (6.0, 30)
    elements.append(diamond(x, y))
    elements.append(element("text", "published, by dynamic evaluation", x=x + 10, y=y + 4, font_size=SIZE))
    return elements


def diamond(x: float, y: float) -> str:
    path = f"M{x - 5:.1f} {y:.1f}l5 -5l5 5l-5 5z"
    return element("path", d=path, fill="none", stroke="currentColor", stroke_width=1.5)


def draw_strip(strip: Strip, left: float, top: float, linked: bool) -> list[str]:
    """A table: its title, its rows below one another, the axis at their foot."""
    values = [value for row in strip.rows for value in (row.published, row.measured)]
    low, high = 0.98 * min(values), 1.02 * max(values)
    begin = left + LABELS

    def place(value: float) -> float:
        return begin + PLOT * math.log(value / low) / math.log(high / low)

    foot = top + TITLE + PITCH * len(strip.rows)
    title = element(
        "text", f"{strip.title}: {strip.unit}", x=left, y=top + 14, font_size=SIZE, font_weight="600"
    )
    elements = [f'<a href="#table-{strip.name}">{title}</a>' if linked else title]
    for tick in round_numbers(low, high, most=4):
        x = place(tick)
        elements.append(
            element(
                "line", x1=x, y1=top + TITLE - 4, x2=x, y2=foot, stroke="currentColor", stroke_opacity="0.25"
            )
        )
        elements.append(
            element("text", f"{tick:g}", x=x, y=foot + 12, font_size=SIZE - 1.5, text_anchor="middle")
        )
    for index, row in enumerate(strip.rows):
        y = top + TITLE + PITCH * (index + 0.5)
        theirs, ours = place(row.published), place(row.measured)
        colour = BETTER if row.better else WORSE
        numbers = (
            f"{format_published(row.published, strip.metric)}{'' if row.verified else UNVERIFIED_SIGN} → "
            f"{format_number(strip.metric, row.measured)}"
        )
        tip = (
            {"data_tip": f"{row.label}: {numbers.replace(' → ', ' published, ')} measured"} if linked else {}
        )
        elements += [f'<a href="#run={address(strip.name, row.name)}">'] if linked else []
        elements += [
            element(
                "text",
                shortened(row.label, LABELS - 14, SIZE),
                x=begin - 10,
                y=y + 4,
                font_size=SIZE,
                text_anchor="end",
            ),
            element("line", x1=theirs, y1=y, x2=ours, y2=y, stroke=colour, stroke_width=1.5),
            diamond(theirs, y)
            if row.dynamic
            else element(
                "circle", cx=theirs, cy=y, r=4, fill="none", stroke="currentColor", stroke_width=1.5
            ),
            element("circle", cx=ours, cy=y, r=4, fill=colour, **tip),
            element("text", numbers, x=left + COLUMN, y=y + 4, font_size=SIZE, text_anchor="end"),
        ]
        elements += ["</a>"] if linked else []
    return elements


def describe(papers: dict[str, list[Strip]]) -> str:
    rows: Sequence[Dots] = [row for strips in papers.values() for strip in strips for row in strip.rows]
    better = sum(row.better for row in rows)
    sign = f" {UNVERIFIED_SIGN}: recalled or second-hand." if not all(row.verified for row in rows) else ""
    dynamic = (
        " Diamonds: the published number used dynamic evaluation, the measured one did not."
        if any(row.dynamic for row in rows)
        else ""
    )
    return (
        f"Published → measured, all {len(rows)} rows with both numbers, on a logarithmic axis for each table. "
        f"{better} measured numbers are better than the published ones, {len(rows) - better} are worse or equal."
        f"{dynamic}{sign}"
    )
