"""The colour and the mark of each row, the same in every figure of its table."""

from collections.abc import Iterable, Sequence

from hornn.reporting.lines import Line
from hornn.reporting.panels import COLOURS, INK, SHAPES, Style, Styles, nth_style

DOTS = "..."  # begin the label of a row that says how it differs from one before


def row_styles(lines: Sequence[Line]) -> dict[str, Style]:
    """Row -> style. Rows of one group share a colour and differ in their marks; a row without a group has its own.

    Where all stand in one group, each row has a colour. Where some rows have a place on an axis, the groups are theirs.
    """
    with_axis = not all(map(is_alone, lines))
    group_of: dict[str, str] = {}
    for line in lines:
        stands_alone = is_alone(line) and (with_axis or not line.row.group)
        group_of[line.row.name] = f"row {line.row.name}" if stands_alone else line.row.group
    groups: dict[str, int] = {}
    for group in group_of.values():
        groups.setdefault(group, len(groups))
    if len(groups) < 2:
        return {line.row.name: nth_style(place)._replace(series=(place,)) for place, line in enumerate(lines)}
    marks, styles, members = list(SHAPES), {}, dict.fromkeys(groups, 0)
    for place, line in enumerate(lines):
        group = group_of[line.row.name]
        colour = groups[group] % len(COLOURS)
        mark = members[group] + groups[group] // len(COLOURS) + (colour if is_alone(line) else 0)
        styles[line.row.name] = Style(COLOURS[colour], marks[mark % len(marks)], (place,))
        members[group] += 1
    return styles


def is_alone(line: Line) -> bool:
    return line.row.x is None and not line.row.place


def line_style(members: Iterable[Line], styles: Styles) -> Style:
    """The style of a line through rows: their colour, or the ink where they have several."""
    own = [styles[line.row.name] for line in members]
    colour = own[0].colour if len({style.colour for style in own}) == 1 else INK
    return Style(colour, own[0].symbol, tuple(place for style in own for place in style.series))


def with_full_labels(lines: Iterable[Line]) -> list[tuple[str, Line]]:
    """The lines with their labels; a label that begins with dots stands behind the label that it goes on from.

    "here" says that a constant named twice has the second value.
    """
    pairs, head = [], ""
    for line in lines:
        label = line.row.label
        head = head if label.startswith(DOTS) else label
        whole = f"{head}; here {label.removeprefix(DOTS).strip()}" if label.startswith(DOTS) else label
        pairs.append((whole, line))
    return pairs
