"""The figure of ranks: the rows in the published order on the left, in the measured order on the right."""

from collections.abc import Sequence

from hornn.reporting.numbers import format_number, format_published
from hornn.reporting.order import Order
from hornn.reporting.panels import COLOURS, Panel
from hornn.reporting.svg import element, picture, shortened

WIDTH, PITCH, TOP, SIZE = 640, 20, 34, 12.0
LEFT, RIGHT = 265, 375  # where the lines begin and end
RISES, FALLS = COLOURS[0], COLOURS[1]


def draw_ranks(order: Order) -> Panel:
    """A line for each row, the best on top."""
    left = places(order, order.published, ties=order.measured)
    right = places(order, order.measured, ties=order.published)
    elements = [
        element("text", "published", x=LEFT - 10, y=14, font_size=SIZE, font_weight="600", text_anchor="end"),
        element("text", "measured", x=RIGHT + 10, y=14, font_size=SIZE, font_weight="600"),
    ]
    for index, label in enumerate(order.labels):
        y, y_end = TOP + PITCH * left[index], TOP + PITCH * right[index]
        colour = RISES if y_end < y else FALLS if y_end > y else "currentColor"
        line = element("line", x1=LEFT, y1=y, x2=RIGHT, y2=y_end, stroke=colour, stroke_width=1.8)
        dots = [element("circle", cx=x, cy=at, r=3.5, fill=colour) for x, at in ((LEFT, y), (RIGHT, y_end))]
        name = shortened(label, LEFT - 50, SIZE)
        theirs = format_published(order.published[index])
        ours = format_number(order.metric.key, order.measured[index])
        elements += [
            line,
            *dots,
            element("text", f"{name}  {theirs}", x=LEFT - 10, y=y + 4, font_size=SIZE, text_anchor="end"),
            element("text", f"{ours}  {name}", x=RIGHT + 10, y=y_end + 4, font_size=SIZE),
        ]
    height = TOP + PITCH * len(order.labels) - 4
    caption = (
        f"Ranks by {order.metric.label}, the best on top. Blue rows rise, orange rows fall. {order.summary}"
    )
    return Panel(
        picture(f"Ranks by {order.metric.label}, published and measured", WIDTH, height, elements), caption
    )


def places(order: Order, values: Sequence[float], ties: Sequence[float]) -> list[int]:
    """The place of each row, 0 the best; rows with equal values stand as the other side has them."""
    sign = 1 if order.lower_is_better else -1
    ranked = sorted(range(len(values)), key=lambda index: (sign * values[index], sign * ties[index]))
    return [ranked.index(index) for index in range(len(values))]
