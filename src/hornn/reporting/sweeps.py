"""The sweep files: each names the runs of one published table or figure, and the numbers to set beside them.

The key `sweep` of `sweeps/<name>.yaml`, a Hydra config of its own, holds

    name, title, paper   the file's name, a heading, the source
    metric               a key of result.json (dots lead inside, -1 is the last of a list), with `metric_label`; or a
                         list of {key, label}.
                         A key in _bpc is the perplexity in _ppl as bits per character
    lower_is_better      true | false, of an accuracy or tokens_per_second always false; null, and of weights
                         always: a size, neither
    seeds                every row is run with each, a row with seeds of its own with those
    rows                 the table's rows, see `Row`
    grid                 axes whose combinations are rows, too, see `hornn.reporting.grid_rows`; with `labels`
    relative_to          optional: the row that all are divided by, in the place of differences
    published_on         optional: the corpus of the published numbers, where the runs read another one
    claims               optional: what the paper says of its rows, see `Claim`
    figure, note         optional; see `Figure`

A file that names another sweep in its `defaults` is that one, its own keys in the place of the other's, as in Hydra.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hornn.places import as_typed
from hornn.reporting.claimed import QUOTED, Claim, read_claims
from hornn.reporting.configs import Configs, Files, conf_of
from hornn.reporting.departures import Recipe
from hornn.reporting.grid_rows import Axis, GridRow, Value, grid_rows, main_axis
from hornn.reporting.inheritance import load_sweep
from hornn.reporting.numbers import is_count
from hornn.reporting.schema import (
    FIGURE_KEYS,
    PUBLISHED_KEYS,
    ROW_KEYS,
    ROW_NAME,
    SWEEP_KEYS,
    check,
    read_range,
    read_seeds,
    rows_named,
)
from hornn.run.identity import INIT_FROM

STATES = ("not built", QUOTED)
HIGH = ("accuracy", "tokens_per_second")  # of these more is better in every table
HINT = "; a choice of your own needs --config-dir FOLDER"


class Metric(NamedTuple):
    """`lower_is_better`: what the table says, except where more is better in every table; None: a size."""

    key: str
    label: str
    lower_is_better: bool | None


class Published(NamedTuple):
    """A number from a paper; `verified` if it was read there, not recalled.

    corpus: what it was measured on, where the runs read something else: then only the ranking compares.
    """

    value: float | None
    verified: bool
    source: str
    corpus: str = ""


class Row(NamedTuple):
    """One line of a table.

    `run` holds the Hydra overrides of its runs, None where there is nothing to run; then `state` says why.
    `start` names the row whose trained network they start from, or the rows that they mix. `seeds`: its own, empty
    where it has the table's.
    `published` maps keys of metrics to numbers: the row takes part in these metrics and in metrics without any
    published number; in all where `published` is empty. `group` and `x` place the row in the figure; `dynamic`: the
    published number used dynamic evaluation. `recipe` holds what decides its runs; rows with one `identity` are the
    same run, whatever sweep they stand in.
    `place` and `words`: axis of a grid -> the row's value there, and the same in words.
    """

    name: str
    label: str
    run: tuple[str, ...] | None
    identity: str
    recipe: Recipe = Recipe()
    state: str | None = None
    published: Mapping[str, Published] = {}
    group: str = ""
    x: float | None = None
    dynamic: bool = False
    note: str = ""
    start: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    place: Mapping[str, Value] = {}
    words: Mapping[str, str] = {}


class Figure(NamedTuple):
    """`x_label` says what the rows' x is; `published_best`: the range of x that the paper found best.

    `base` names a row: how far the others of its group are from it is a figure, too.
    """

    x_label: str
    published_best: tuple[float, float] | None = None
    base: str | None = None


class Sweep(NamedTuple):
    name: str
    title: str
    paper: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    path: Path
    seeds: tuple[int, ...] = ()
    figure: Figure | None = None
    claims: tuple[Claim, ...] = ()
    relative_to: str | None = None
    note: str = ""
    command: str = ""  # that makes its runs; empty where the file does not know
    axes: tuple[Axis, ...] = ()
    published_on: str = ""

    @property
    def published_of_runs(self) -> set[str]:
        """The metrics that the paper has a number for, or a place, in some row that is run."""
        return {key for row in self.rows if row.run is not None for key in row.published}


class Sweeps(NamedTuple):
    """`tables` in the order of their files; `refused`: name of a file -> why it cannot be read."""

    tables: list[Sweep]
    refused: dict[str, str]


def read_sweeps(folder: Path, own: Path | None = None) -> list[Sweep]:
    """As `find_sweeps`. Raises ValueError for a sweep file that is wrong."""
    found = find_sweeps(folder, own)
    if found.refused:
        raise ValueError("; ".join(found.refused.values()))
    return found.tables


def find_sweeps(folder: Path, own: Path | None = None) -> Sweeps:
    """The sweeps of a folder that define a table, and those in `sweeps` of `own`, a user's folder like conf.

    Raises ValueError for a folder that is not there.
    """
    for place, option in (
        (folder, "--sweeps FOLDER, the one that holds the sweep files"),
        (own, "--config-dir FOLDER"),
    ):
        if place and not place.is_dir():
            raise ValueError(f"there is no folder {place}: give {option}")
    found = Sweeps([], {})
    theirs = own / "sweeps" if own else folder
    is_one = theirs.is_dir() and theirs.samefile(folder)  # without `own`, or where one works in it
    for path in [*(() if is_one else sorted(folder.glob("*.yaml"))), *sorted(theirs.glob("*.yaml"))]:
        try:
            content = load_sweep(path)
            if "sweep" not in content:
                continue
            sweep = define(path, content, Files(content, conf_of(folder / path.name), own))
            if own and path.parent == theirs:
                if not is_one and (ours := folder / path.name).is_file():
                    raise ValueError(f"{path} has the name of {ours}: give it another one")
                sweep = sweep._replace(command=sweep.command.replace(" -m ", f" --config-dir={own} -m "))
            found.tables.append(sweep)
        except OSError as error:  # of it, or of a file whose name it makes
            found.refused[path.stem] = f"{path} cannot be read ({error.strerror}): mend or remove it"
        except ValueError as error:
            hint = "" if own or "unknown" not in str(error) else HINT
            found.refused[path.stem] = f"{error}{hint}"
    return found


def define(path: Path, content: dict[str, Any], configs: Configs | None = None) -> Sweep:
    """The table of a sweep file's content. Raises ValueError naming the file, and the row, that is wrong.

    configs: what is known of the configs of its runs, by default what the files beside it say.
    """
    node = content.pop("sweep", None)
    configs = configs or Files(content, conf_of(path))
    check(node, SWEEP_KEYS, f"{path}: sweep")
    if node["name"] != path.stem:
        raise ValueError(f"{path}: sweep.name is {node['name']!r}: it must be the file's name, {path.stem!r}")
    seeds = read_seeds(node.get("seeds"), f"{path}: sweep.seeds")
    metrics, published_on = read_metrics(node, path), node.get("published_on", "")
    combined: list[GridRow] = []
    axes: tuple[Axis, ...] = ()
    if "grid" in node or "labels" in node:
        combined, axes = grid_rows(node.get("grid"), node.get("labels", {}), configs, f"{path}: sweep.")
    row_of = partial(read_row, metrics=metrics, configs=configs, path=path, published_on=published_on)
    read = [row_of(each) for each in node.get("rows", ())]
    for each in combined:
        row = row_of({"name": each.name, "label": each.label, "run": list(each.run)})
        read.append(place(row, axes, each))
    if not read:
        raise ValueError(f"{path}: sweep: rows is missing")
    rows = join(read, path, seeds)
    require_unlike(rows, path)
    names = {row.name: row for row in rows}
    figure = read_figure(node, axes, path)
    for key, name in (("relative_to", node.get("relative_to")), ("figure.base", figure and figure.base)):
        if name is not None and name not in names:
            raise ValueError(f"{path}: sweep.{key} names {name!r}, which is no row")
    return Sweep(
        name=node["name"],
        title=node["title"],
        paper=node["paper"],
        metrics=metrics,
        rows=rows,
        path=path,
        seeds=seeds,
        figure=figure,
        claims=read_claims(node.get("claims", []), [metric.key for metric in metrics], names, path),
        relative_to=node.get("relative_to"),
        note=node.get("note", ""),
        command=as_typed(f"python src/train.py -m sweeps={path.stem}"),
        axes=axes,
        published_on=published_on,
    )


def require_unlike(rows: Sequence[Row], path: Path) -> None:
    """Raise ValueError where two rows have one name, or are one run."""
    seen: dict[str, str] = {}
    for row in rows:
        for what, mark in ((f"name {row.name}", row.name), (f"run {' '.join(row.run or ())}", row.identity)):
            if mark and mark in seen:
                raise ValueError(
                    f"{path}: rows {seen[mark]!r} and {row.name!r} have the same {what}: keep one"
                )
            seen[mark] = row.name


def read_figure(node: Mapping[str, Any], axes: Sequence[Axis], path: Path) -> Figure | None:
    """The figure of a sweep: the one that it names, or the one of the main axis of its grid."""
    if "figure" not in node:
        main = main_axis(axes)
        return Figure(main.label) if main else None
    if axes:
        raise ValueError(f"{path}: sweep.figure: a grid has a figure for each axis: leave it out")
    figure = node["figure"]
    check(figure, FIGURE_KEYS, f"{path}: sweep.figure")
    best = figure.get("published_best")
    ends = None if best is None else read_range(best, f"{path}: sweep.figure.published_best")
    return Figure(figure["x_label"], ends, figure.get("base"))


def place(row: Row, axes: Sequence[Axis], at: GridRow) -> Row:
    """The row with its place in the grid; in the main figure it stands at its value of the main axis."""
    main = main_axis(axes)
    x = at.place.get(main.key) if main else None
    others = ", ".join(text for key, text in at.words.items() if main is None or key != main.key)
    number = float(x) if main and main.is_numeric and isinstance(x, int | float) else None
    return row._replace(place=at.place, words=at.words, group=others, x=number)


def read_metrics(node: Mapping[str, Any], path: Path) -> tuple[Metric, ...]:
    items, lower = node["metric"], node["lower_is_better"]
    if isinstance(items, str):
        if "metric_label" not in node:
            raise ValueError(f"{path}: sweep.metric {items!r} needs a metric_label")
        items = [{"key": items, "label": node["metric_label"]}]
    for item in items:
        check(item, {"key": str, "label": str}, f"{path}: sweep.metric")
    keys = [item["key"] for item in items]
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(f"{path}: sweep.metric must list different keys, got {keys}")
    lower_of = {key: None if is_count(key) else lower and not key.endswith(HIGH) for key in keys}
    return tuple(Metric(**item, lower_is_better=lower_of[item["key"]]) for item in items)


def read_row(
    node: Any, metrics: Collection[Metric], configs: Configs, path: Path, published_on: str = ""
) -> Row:
    where = f"{path}: row {node.get('name') if isinstance(node, dict) else node!r}"
    check(node, ROW_KEYS, where)
    if not ROW_NAME.fullmatch(node["name"]):
        raise ValueError(f"{where}: a name has letters, digits and . _ - alone: files are called after it")
    run, state = node["run"], node.get("state")
    if (run is None) == (state is None):
        raise ValueError(f"{where}: give either run, or run: null and state: {' | '.join(STATES)}")
    if state is not None and state not in STATES:
        raise ValueError(f"{where}: unknown state {state!r}; it is one of: {', '.join(STATES)}")
    if not all(isinstance(word, str) and ("=" in word or word[:1] == "~") for word in run or ()):
        raise ValueError(f"{where}: run must list overrides key=value or ~key, got {run}")
    published = node.get("published") or {}
    keys = [metric.key for metric in metrics]
    if len(keys) == 1 and published and keys[0] not in published:
        published = {keys[0]: published}
    for key, number in published.items():
        if key not in keys:
            raise ValueError(f"{where}: published names {key!r}; the metrics are: {', '.join(keys)}")
        check(number, PUBLISHED_KEYS, f"{where}: published")
        if number["value"] is not None and not number["source"].strip():
            raise ValueError(f"{where}: the published {number['value']} has no source: say where it was read")
    recipe, identity = Recipe(), ""
    if run is not None:
        try:
            recipe = configs.recipe(run)
            identity = recipe.name
        except (ValueError, TypeError) as error:  # the latter of keys without an order, 1 and text
            raise ValueError(f"{where}: {error}") from error
    return Row(
        name=node["name"],
        label=node["label"],
        run=None if run is None else tuple(run),
        identity=identity,
        recipe=recipe,
        state=state,
        published={key: Published(**number, corpus=published_on) for key, number in published.items()},
        group=node.get("group", ""),
        x=node.get("x"),
        dynamic=node.get("dynamic", False),
        note=node.get("note", ""),
        start=tuple(rows_named(node["start"], where)) if "start" in node else (),
        seeds=read_seeds(node["seeds"], f"{where}: seeds") if "seeds" in node else (),
    )


def join(rows: Sequence[Row], path: Path, seeds: Sequence[int]) -> tuple[Row, ...]:
    """The rows; a row that starts from another one has that in its recipe."""
    by_name = {row.name: row for row in rows}
    joined = []
    for row in rows:
        firsts = [by_name.get(name) for name in row.start]
        for name, first in zip(row.start, firsts, strict=True):
            if row.run is None or first is None or first.run is None or first.start:
                raise ValueError(
                    f"{path}: row {row.name!r} starts from {name!r}: "
                    "name a row with a run that starts from no other"
                )
            if sorted(row.seeds or seeds) != sorted(first.seeds or seeds):
                raise ValueError(f"{path}: rows {row.name!r} and {name!r} must have the same seeds")
        if firsts:
            labels = " and ".join(first.label for first in firsts if first)
            identities = " ".join(first.identity for first in firsts if first)
            start = row.recipe._replace(config={**row.recipe.config, INIT_FROM: f"the weights of {labels}"})
            named = row.recipe._replace(config={**row.recipe.config, INIT_FROM: identities})
            row = row._replace(recipe=start, identity=named.name)
        joined.append(row)
    return tuple(joined)
