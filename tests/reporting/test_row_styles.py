"""Colours and marks of rows: groups share a colour where they are lines of a figure, or where no figure has an axis."""

from types import SimpleNamespace
from typing import Any

from hornn.reporting.row_styles import row_styles


def line(name: str, group: str = "", x: float | None = None) -> Any:
    return SimpleNamespace(row=SimpleNamespace(name=name, group=group, x=x, place={}))


def test_groups_on_an_axis_share_a_colour_and_rows_beside_it_have_their_own() -> None:
    lines = [
        line("rnn", "first order"),
        line("lstm", "first order"),
        line("sum-2", "sum", 2),
        line("sum-3", "sum", 3),
    ]
    colours = {name: style.colour for name, style in row_styles(lines).items()}
    assert colours["sum-2"] == colours["sum-3"]
    assert len(set(colours.values())) == 3


def test_groups_without_an_axis_share_a_colour() -> None:
    lines = [line("rnn"), line("lstm", "gated"), line("sum-2", "sum"), line("gru", "gated"), line("dt")]
    styles = row_styles(lines)
    assert styles["lstm"].colour == styles["gru"].colour
    assert len({style.colour for style in styles.values()}) == 4
    assert len({(style.colour, style.symbol) for style in styles.values()}) == 5


def test_rows_without_groups_have_a_colour_each() -> None:
    assert len({style.colour for style in row_styles([line("rnn"), line("lstm"), line("gru")]).values()}) == 3
    one = [line(f"sum-{order}", "sum", order) for order in (2, 3, 4)]
    assert len({style.colour for style in row_styles(one).values()}) == 3
