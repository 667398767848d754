"""The measurements as tables in a terminal."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.console import Console

from hornn.reporting.numbers import format_bound, percent
from hornn.reporting.scores import is_at_limit
from hornn.result import MEMORY
from hornn.shown import is_screen, shown

GAP = "  "  # between columns
SHOWN = (1, 2, 5, 10, 20, 50, 100)  # lags and numbers of known words that have a column
NAMES = {
    "gradient_reach": "lags with 1 % of the gradient or more",
    "gradient_reach_at_start": "... before training",
    "effective_memory": "known words for 1 % of the perplexity",
    "saturation": "saturated units",
    "pooled_rms": "size of the pooled feedback",
    "pooled_range": "its range",
    "pooled_growth": "its size over the size before training",
}


def show(figures: Mapping[str, Any], console: Console) -> None:
    """Print what `hornn.analysis.analyse.measure` found."""
    settings = figures["settings"]
    console.print(
        f"run {figures['name']}, seed {figures['seed']}: {figures['corpus']['name']} {settings['split']}",
        markup=False,
    )
    columns = [lag for lag in SHOWN if lag <= settings["lags"]]
    gradients = [
        (stage_name(stage), part, *(f"{norms['q50'][lag - 1]:.1e}" for lag in columns))
        for stage in figures["stages"]
        for part, norms in stage["gradient"].items()
    ]
    show_grid(
        console,
        "median norm of d loss_t / d h_{t-k}, by k",
        ("weights", "part", *map(str, columns)),
        gradients,
        keys=2,
    )
    paths = [
        (stage_name(stage), name, *(f"{path[key]:.2f}" for key in ("low", "high", "rms")))
        for stage in figures["stages"]
        for name, path in stage["paths"].items()
    ]
    if paths:
        header = ("weights", "path", "1 %", "99 %", "rms")
        show_grid(console, "signals before the activation", header, paths, keys=2)
    show_grid(
        console,
        "saturated units, by steps from the initial state",
        ("weights", *map(str, columns)),
        [
            (stage_name(stage), *(percent(stage["saturation"][lag - 1]) for lag in columns))
            for stage in figures["stages"]
        ],
        keys=1,
    )
    known = figures["known"]
    show_grid(
        console,
        "perplexity with k known words, by the count of the word in training",
        ("words", "targets", *map(str, columns), "all"),
        [known_row("all", known, columns)]
        + [known_row(label, curve, columns) for label, curve in known["by_count"].items()],
        keys=1,
    )
    for layer in figures["factors"]:
        values = layer["values"]
        console.print(
            f"learned factors: {len(values)}, from {values[0]:.3f} to {values[-1]:.3f}, "
            f"median {median(values):.3f}",
            markup=False,
        )
        for unit in layer["units"]:
            words = shown(" ".join(unit["words"]))
            console.print(f"  {unit['factor']:.3f}  {words}", markup=False)
    for key, value in figures["summary"].items():
        console.print(f"{NAMES[key]:>42}  {summary_text(figures, key, value)}", markup=False)


def summary_text(figures: Mapping[str, Any], key: str, value: float) -> str:
    if key == "saturation":
        return percent(value)
    if is_at_limit({MEMORY: figures}, f"{MEMORY}.summary.{key}"):
        return format_bound(value)
    return f"{value:g}" if isinstance(value, int) else f"{value:.2f}"


def stage_name(stage: Mapping[str, Any]) -> str:
    return f"epoch {stage['epoch']}"


def known_row(label: str, curve: Mapping[str, Any], columns: Sequence[int]) -> tuple[str, ...]:
    shown = [number(curve["perplexity"][k - 1]) for k in columns]
    return (label, f"{curve['targets']:,}", *shown, number(curve["whole"]))


def number(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def show_grid(
    console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], keys: int
) -> None:
    """Print a table whole: columns that a terminal has no room for follow below, behind the first `keys` ones again."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    room = console.width if is_screen(console) else math.inf
    parts: list[list[int]] = [[]]
    for place in range(keys, len(header)):
        needed = sum(widths[other] + len(GAP) for other in [*range(keys), *parts[-1]]) + widths[place]
        if parts[-1] and needed > room:
            parts.append([])
        parts[-1].append(place)
    console.print(title, style="bold", markup=False)
    for part in parts:
        for row in (header, *rows):
            cells = [row[place].ljust(widths[place]) for place in range(keys)]
            cells += [row[place].rjust(widths[place]) for place in part]
            console.print(GAP.join(cells), style="bold" if row is header else None, markup=False)
