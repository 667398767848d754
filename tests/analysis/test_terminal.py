"""The tables of measurements: no number is cut, however narrow the terminal."""

import io

from rich.console import Console

from hornn.analysis.terminal import show_grid

HEADER = ("words", "1", "2", "5", "all")
ROWS = [("all", "4,444,444", "813.5", "1.0e-27", "7"), ("below 10", "2", "30", "400", "81,345,678")]
WHOLE = """\
by words
words             1      2        5         all
all       4,444,444  813.5  1.0e-27           7
below 10          2     30      400  81,345,678
"""


def shown(width: int, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=terminal, color_system=None, highlight=False, soft_wrap=True
    )
    show_grid(console, "by words", HEADER, ROWS, keys=1)
    return file.getvalue()


def test_what_is_no_terminal_gets_whole_lines() -> None:
    assert shown(20, terminal=False) == WHOLE


def test_a_terminal_with_room_gets_one_table() -> None:
    width = max(map(len, WHOLE.splitlines()))
    assert shown(width, terminal=True) == WHOLE
    assert shown(width - 1, terminal=True) != WHOLE


def test_columns_without_room_follow_below() -> None:
    below = """\
by words
words             1      2
all       4,444,444  813.5
below 10          2     30
words           5
all       1.0e-27
below 10      400
words            all
all                7
below 10  81,345,678
"""
    assert shown(26, terminal=True) == below


def test_a_number_that_no_line_has_room_for_is_whole() -> None:
    said = shown(9, terminal=True).split()
    assert {cell for row in ROWS for cell in row[1:]} <= {*said}
