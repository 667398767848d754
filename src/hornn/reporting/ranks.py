"""The figure of ranks: the rows in the published order on the left, in the measured order on the right."""

from collections.abc import Sequence

from hornn.reporting.numbers import format_number, format_published
from hornn.reporting.order import Order
from hornn.reporting.panels import Panel, Styles, whose
from hornn.reporting.svg import LETTER_WIDTH, element, group, picture, shortened

PITCH, TOP, SIZE = 20, 34, 12.0
LINES, ROOM, NUMBER = 110, 215, 64  # widths: of the lines, of the longest name, of its number


def draw_ranks(order: Order, styles: Styles) -> Panel:
    """A line for each row, the best on top."""
    left = places(order, order.published, ties=order.measured)
    right = places(order, order.measured, ties=order.published)
    begin = min(ROOM, LETTER_WIDTH * SIZE * max(map(len, order.labels))) + NUMBER
    end, width = begin + LINES, 2 * begin + LINES
    elements = [
        element(
            "text", "published", x=begin - 10, y=14, font_size=SIZE, font_weight="600", text_anchor="end"
        ),
        element("text", "measured", x=end + 10, y=14, font_size=SIZE, font_weight="600"),
    ]
    for index, label in enumerate(order.labels):
        y, y_end = TOP + PITCH * left[index], TOP + PITCH * right[index]
        style = styles[order.rows[index]]
        name = shortened(label, ROOM, SIZE)
        theirs = format_published(order.published[index], order.metric.key)
        ours = format_number(order.metric.key, order.measured[index])
        tip = f"{theirs} published, place {left[index] + 1}; {ours} measured, place {right[index] + 1}"
        line = element("line", x1=begin, y1=y, x2=end, y2=y_end, stroke=style.colour, stroke_width=1.8)
        marks = [
            element(
                "text",
                style.symbol,
                x=x,
                y=at + 4,
                font_size=SIZE,
                text_anchor="middle",
                fill=style.colour,
            )
            for x, at in ((begin, y), (end, y_end))
        ]
        elements += [
            group([line, *marks], **whose(style, tip)),
            element("text", f"{name}  {theirs}", x=begin - 10, y=y + 4, font_size=SIZE, text_anchor="end"),
            element("text", f"{ours}  {name}", x=end + 10, y=y_end + 4, font_size=SIZE),
        ]
    height = TOP + PITCH * len(order.labels) - 4
    caption = (
        f"Ranks by {order.heading}, the best on top: a line that rises is ranked better than published. "
        f"{order.summary}"
    )
    name = f"Ranks by {order.heading}, published and measured"
    return Panel(picture(name, width, height, elements), caption, wide=True)


def places(order: Order, values: Sequence[float], ties: Sequence[float]) -> list[int]:
    """The place of each row, 0 the best; rows with equal values stand as the other side has them."""
    sign = 1 if order.metric.lower_is_better else -1
    ranked = sorted(range(len(values)), key=lambda index: (sign * values[index], sign * ties[index]))
    return [ranked.index(index) for index in range(len(values))]
