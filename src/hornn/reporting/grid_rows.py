"""The rows of a grid: a sweep file lists the values of each axis, and each combination of them is a row.

    grid:
      model: [rnn, hornn_fofe]                 a group: each value is one of its choices
      model.order: [2, 3]                      a key of the config
      recipe: {slow: [optimizer.lr=0.01],      neither: each value has a name and a list of overrides
               fast: [optimizer.lr=0.1, optimizer.clip=1]}

A combination whose config does not have a key of the grid makes a row without that key: `rnn` has no order, so that it
is one row here and not two. A key that no combination has is an error.

A row is named after its values, in the order of the axes: `hornn_fofe-order2-slow`. So a row keeps its name, and with
it its results, when values are added. `labels` puts values and axes in other words:
{hornn_fofe: "FOFE HORNN", model.hidden_size: "{} units"}.
"""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from hornn.reporting.schema import ROW_NAME

WORD = re.compile(r"\w[\w./-]*")  # a value that needs no quotes on a command line
KEY = re.compile(r"[A-Za-z_]\w*([./][A-Za-z_]\w*)*")
WIDE = 20  # the largest value by the smallest: from here on an axis is logarithmic

Value = str | int | float | bool | None


class Axis(NamedTuple):
    """`key`: of the config, or the axis' own name; `label`: its words in a figure."""

    key: str
    label: str
    values: tuple[Value, ...]

    @property
    def is_numeric(self) -> bool:
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    @property
    def is_width(self) -> bool:
        return self.is_numeric and self.key.endswith("_size")

    @property
    def is_logarithmic(self) -> bool:
        numbers = [value for value in self.values if isinstance(value, int | float)]
        return self.is_numeric and min(numbers) > 0 and (self.is_width or max(numbers) >= WIDE * min(numbers))


class GridRow(NamedTuple):
    """`place`: axis -> the row's value there, for the axes that it has; `words`: the same in words."""

    name: str
    label: str
    run: tuple[str, ...]
    place: Mapping[str, Value]
    words: Mapping[str, str]


class Config(Protocol):
    """What a grid must know of the configs that its combinations compose to."""

    def is_group(self, key: str) -> bool:
        """Whether `key` chooses a file, as `model` does."""

    def holds(self, run: Sequence[str], key: str) -> bool:
        """Whether the config of the overrides `run` has this key. ValueError for a choice that there is not."""


class Setting(NamedTuple):
    """One value of one axis."""

    axis: str
    value: Value
    run: tuple[str, ...]
    name: str
    label: str


def grid_rows(
    grid: Any, labels: Mapping[str, Any], config: Config, where: str
) -> tuple[list[GridRow], tuple[Axis, ...]]:
    """The rows of a grid and its axes. Raises ValueError, which begins with `where`, for a grid that is wrong."""
    where = f"{where}grid"
    check_grid(grid, labels, config, where)
    groups = [key for key, values in grid.items() if isinstance(values, Mapping) or config.is_group(key)]
    short = short_names(list(grid))
    axes = [
        [read_setting(key, value, key in groups, short[key], grid, labels, where) for value in grid[key]]
        for key in grid
    ]
    rows: dict[tuple[str, ...], GridRow] = {}
    held = set(groups)
    known: dict[tuple[tuple[str, ...], str], bool] = {}
    for settings in itertools.product(*axes):
        chosen = tuple(word for each in settings if each.axis in groups for word in each.run)
        kept = []
        for each in settings:
            if each.axis not in groups:
                if (chosen, each.axis) not in known:
                    try:
                        known[chosen, each.axis] = config.holds(chosen, each.axis)
                    except ValueError as error:
                        raise ValueError(f"{where}: {error}") from error
                if not known[chosen, each.axis]:
                    continue
            held.add(each.axis)
            kept.append(each)
        run = tuple(word for each in kept for word in each.run)
        rows.setdefault(run, join(kept, run))
    for key in grid:
        if key not in held:
            raise ValueError(f"{where}: no run of the grid has a key {key!r}")
    words = {*grid, *(as_text(value) for key in groups for value in grid[key])}
    for key in labels:
        if key not in words:
            named = ", ".join(sorted(words))
            raise ValueError(f"{where.removesuffix('grid')}labels: the grid has no {key!r}; it has: {named}")
    return check_rows(list(rows.values()), where), tuple(
        Axis(key, axis_label(key, short[key], labels), tuple(setting.value for setting in axis))
        for key, axis in zip(grid, axes, strict=True)
    )


def check_grid(grid: Any, labels: Mapping[str, Any], config: Config, where: str) -> None:
    if not isinstance(grid, Mapping) or not grid:
        raise ValueError(f"{where} must hold axes, such as model.order: [2, 3], got {grid!r}")
    for key, values in grid.items():
        if not isinstance(key, str) or not KEY.fullmatch(key):
            raise ValueError(f"{where}: an axis is called after a key of the config, got {key!r}")
        if key == "seed":
            raise ValueError(f"{where}: seed is no axis: give sweep.seeds")
        if not isinstance(values, list | Mapping) or not values:
            raise ValueError(f"{where}: {key} must list values, or name lists of overrides, got {values!r}")
        if isinstance(values, Mapping) and (config.is_group(key) or "." in key):
            raise ValueError(
                f"{where}: {key} is a key of the config: list its values; an axis of named overrides needs another name"
            )
        if any(values.count(value) > 1 for value in values if isinstance(values, list)):
            raise ValueError(f"{where}: {key} lists a value twice: {values}")
    for key, text in labels.items():
        if not isinstance(text, str):
            raise ValueError(f"{where.removesuffix('grid')}labels: {key} must be put in words, got {text!r}")


def read_setting(
    key: str,
    value: Any,
    chooses: bool,
    short: str,
    grid: Mapping[str, Any],
    labels: Mapping[str, str],
    where: str,
) -> Setting:
    if isinstance(grid[key], Mapping):
        run = grid[key][value]
        if not isinstance(run, list) or not all(isinstance(word, str) and "=" in word for word in run):
            raise ValueError(f"{where}: {key}: {value!r} must list overrides KEY=VALUE, got {run!r}")
        if not isinstance(value, str) or not ROW_NAME.fullmatch(value):
            raise ValueError(f"{where}: {key}: a name has letters, digits and . _ - alone, got {value!r}")
        for word in run:
            if (own := word.partition("=")[0].lstrip("+")) in grid:
                raise ValueError(f"{where}: {value!r} of {key} sets {own}, which is an axis itself")
        return Setting(key, value, tuple(run), value, labels.get(value, value))
    if not isinstance(value, Value) or (isinstance(value, str) and not WORD.fullmatch(value)):
        raise ValueError(
            f"{where}: a value of {key} must be a word, a number, true, false or null, got {value!r}"
        )
    text = as_text(value)
    if chooses:
        return Setting(key, value, (f"{key}={text}",), text.replace("/", "."), labels.get(text, text))
    pattern = labels.get(key, short.replace("_", " "))
    label = pattern.replace("{}", text) if "{}" in pattern else f"{pattern} {text}"
    return Setting(key, value, (f"{key}={text}",), f"{short}{text}".replace("/", "."), label)


def as_text(value: Value) -> str:
    """A value as the command line has it."""
    return value if isinstance(value, str) else json.dumps(value)


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """The last word of each key; the whole key where that is another one's, too."""
    last = {key: re.split(r"[./]", key)[-1] for key in keys}
    return {
        key: word if list(last.values()).count(word) == 1 else key.replace("/", ".")
        for key, word in last.items()
    }


def axis_label(key: str, short: str, labels: Mapping[str, str]) -> str:
    return labels.get(key, short.replace("_", " ")).replace("{}", "").strip()


def join(settings: Sequence[Setting], run: tuple[str, ...]) -> GridRow:
    return GridRow(
        "-".join(each.name for each in settings),
        ", ".join(each.label for each in settings),
        run,
        {each.axis: each.value for each in settings},
        {each.axis: each.label for each in settings},
    )


def check_rows(rows: list[GridRow], where: str) -> list[GridRow]:
    seen: dict[str, GridRow] = {}
    for row in rows:
        if not ROW_NAME.fullmatch(row.name):
            raise ValueError(
                f"{where}: the values of {' '.join(row.run)} make no name of a row: {row.name!r}"
            )
        if row.name in seen:
            both = f"{' '.join(seen[row.name].run)} and {' '.join(row.run)}"
            raise ValueError(f"{where}: {both} would both be called {row.name!r}: name the values of an axis")
        seen[row.name] = row
    return rows


def main_axis(axes: Sequence[Axis]) -> Axis | None:
    """The numeric axis with most values, or else the first; None without any."""
    numeric = [axis for axis in axes if axis.is_numeric and len(axis.values) > 1]
    return max(numeric, key=lambda axis: len(axis.values)) if numeric else axes[0] if axes else None
