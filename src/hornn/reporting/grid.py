"""A table as cells of text: which columns it has, and how numbers are written there."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from hornn.reporting.lines import Line, on_one_device
from hornn.reporting.numbers import SIGN_MEANINGS, format_bound, format_number, format_published, is_count
from hornn.reporting.scores import Score, signs_of_published
from hornn.reporting.sweeps import Row
from hornn.reporting.tables import Table

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
DIFFERENCE = "measured - published"


class Cell(NamedTuple):
    """`value` is what a column is sorted by; `marks` are letters that the legend explains."""

    text: str = ""
    value: float | str | None = None
    marks: str = ""
    kind: str = "number"


class Grid(NamedTuple):
    """A table as cells. `legend`: mark -> what it says.

    `heads` holds the header in two levels: of each column the metric, which is empty where a table has one alone or the
    column has none, and what it says of the metric.
    """

    heads: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...]
    legend: dict[str, str]

    @property
    def header(self) -> list[str]:
        """In one level."""
        return [f"{name} ({metric})" if metric else name for metric, name in self.heads]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Each metric with the number of its columns, in their order."""
        return [(metric, len(list(heads))) for metric, heads in groupby(self.heads, lambda head: head[0])]

    def select(self, columns: Sequence[int]) -> "Grid":
        """These columns alone."""
        rows = tuple(tuple(cells[index] for index in columns) for cells in self.rows)
        return self._replace(heads=tuple(self.heads[index] for index in columns), rows=rows)


def table_grid(table: Table) -> Grid:
    """Columns: the row; for each metric the published number, the measured one, their difference; what a run cost.

    In a sweep that is relative to a row, both numbers divided by that row's stand in the place of the difference.
    Columns without any entry are left out, except the measured numbers: those of every metric where nothing is
    measured, else of each metric that has an entry. A device that all runs share has no column. The notes name the
    devices, the rows their letters there.
    """
    metrics, keys = table.sweep.metrics, {metric.key for metric in table.sweep.metrics}
    base = next((line for line in table.lines if line.row.name == table.sweep.relative_to), None)
    heads = [("", "model")]
    for metric in metrics:
        names = ["published", "measured"]
        if shows_best_seed(metric.key):
            names.append("best by validation")
        names += [f"{name} / {base.row.label}" for name in names[:2]] if base else [DIFFERENCE]
        heads += [(metric.label if len(metrics) > 1 else "", name) for name in names]
    sized, timed = "num_parameters" not in keys, "seconds_per_epoch" not in keys
    if sized:
        heads.append(("", "weights"))
    if timed:
        heads.append(("", "s/epoch"))
    heads += [("", "device"), ("", "runs")]

    letters: dict[str, str] = {}
    shared = shared_marks(table)
    devices = device_letters(table)
    rows = []
    for line in table.lines:
        own = [mark for mark in line.marks if mark not in shared]
        for mark in own:
            letters.setdefault(mark, nth_letter(len(letters)))
        cells = [Cell(line.row.label, line.row.label, "".join(letters[mark] for mark in own), "label")]
        for metric in metrics:
            cells += score_cells(metric.key, line, base)
        if sized:
            cells.append(Cell(format_number("num_parameters", line.parameters), line.parameters))
        if timed:
            cells.append(Cell(format_number("seconds_per_epoch", line.seconds), line.seconds))
        signs = ", ".join(sign for sign, device in devices.items() if device in line.devices)
        cells += [Cell(signs, signs, kind="device"), Cell(line.status, line.status, kind="runs")]
        rows.append(tuple(cells))
    filled = [any(cells[index].text for cells in rows) for index in range(len(heads))]
    told = {metric for (metric, name), is_filled in zip(heads, filled, strict=True) if is_filled}
    used = [
        index
        for index, (metric, name) in enumerate(heads)
        if name in ("model", "runs")
        or (
            table.runnable
            and name.startswith("measured")
            and name != DIFFERENCE
            and (metric in told or not table.measured)
        )
        or (filled[index] and not (name == "device" and len(devices) == 1))
    ]
    grid = Grid(tuple(heads), tuple(rows), {}).select(used)
    shown = "".join(cell.text for cells in grid.rows for cell in cells)
    legend = {sign: text for sign, text in SIGN_MEANINGS.items() if sign in shown}
    return grid._replace(legend=legend | {sign: mark for mark, sign in letters.items()})


def shared_marks(table: Table) -> list[str]:
    """What is to be known of every measured row: it is said once, in the notes. None in a table of a few rows."""
    marked = [line.marks for line in table.lines if line.measured]
    return [mark for mark in marked[0] if all(mark in marks for marks in marked)] if len(marked) > 3 else []


def nth_letter(index: int) -> str:
    """a to z, then aa, ab, .."""
    return (nth_letter(index // 26 - 1) if index >= 26 else "") + ALPHABET[index % 26]


def device_letters(table: Table) -> dict[str, str]:
    """The devices of its runs: A, B, .. -> a device."""
    return {nth_letter(index).upper(): device for index, device in enumerate(table.devices)}


def shows_best_seed(key: str) -> bool:
    """Whether choosing a seed by validation says something: not for sizes, times and validation itself."""
    return key.startswith("test_")


def score_cells(key: str, line: Line, base: Line | None) -> list[Cell]:
    score = line.scores.get(key)
    published = score.published if score else None
    theirs = Cell(published_text(key, score, line.row), published.value if published else None)
    measured = Cell()
    if score and score.mean is not None:
        text = format_bound(score.mean) if score.at_limit else format_number(key, score.mean)
        if score.deviation is not None and not is_count(key):
            spread = "" if score.at_limit else f" ± {format_number(key, score.deviation)}"
            text += f"{spread} (n = {len(score.values)})"
        measured = Cell(text, score.mean)
    difference = score.difference if score else None
    cells = [theirs, measured]
    if shows_best_seed(key):
        best = score.best if score and len(score.values) > 1 else None
        cells.append(Cell(format_number(key, best), best))
    if base:
        unit = base.scores.get(key)
        in_theirs = unit.published.value if unit and unit.published else None
        return [
            *cells,
            ratio_cell(theirs.value, in_theirs),
            ratio_cell(measured.value, unit.mean if unit and on_one_device(key, (line, base)) else None),
        ]
    sign = "+" if difference and difference > 0 else ""
    return [*cells, Cell(sign + format_number(key, difference), difference)]


def published_text(key: str, score: Score | None, row: Row) -> str:
    """A published number with its signs, as `SIGN_MEANINGS` has them; empty where there is none."""
    published = score.published if score else None
    if published is None or published.value is None:
        return ""
    return format_published(published.value, key) + signs_of_published(published, row.dynamic)


def ratio_cell(value: float | str | None, unit: float | None) -> Cell:
    if not isinstance(value, int | float) or not unit:
        return Cell()
    return Cell(f"{value / unit:.2f}", value / unit)
