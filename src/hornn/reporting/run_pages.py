"""A page for each run: its figures, its curves, what it departs in, where it comes from, how to repeat it."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from hornn.recipe import flatten
from hornn.reporting.departures import departures
from hornn.reporting.lines import Line
from hornn.reporting.markdown import relative_address
from hornn.reporting.numbers import format_number
from hornn.reporting.panels import COLOURS
from hornn.reporting.runs import Run
from hornn.reporting.svg import element, picture
from hornn.reporting.tables import Table
from hornn.result import write_atomically

TEMPLATE = Path(__file__).with_name("run.html")
FOLDER = "runs"
WIDTH, HEIGHT, LEFT, FOOT, SIZE = 460.0, 220.0, 60.0, 190.0, 12.0
# Of a record: what is drawn in one picture, and whether its axis is logarithmic.
PICTURES = (
    ("Perplexity after each epoch", ("train_ppl", "valid_ppl"), False),
    ("Learning rate of each epoch, on a logarithmic axis", ("lr",), True),
    ("Norm of the gradient, mean and largest of each epoch", ("grad_norm", "max_grad_norm"), False),
)
NAMES = {
    "train_ppl": "training",
    "valid_ppl": "validation",
    "lr": "learning rate",
    "grad_norm": "mean",
    "max_grad_norm": "largest",
}
EPOCHS = {"epochs": "epochs", "best_epoch": "best epoch"}
FAR = 3.0  # times the last value: a curve is shown up to there


def page_name(table: Table, line: Line, run: Run) -> str:
    """The page of a run, from the folder of the report."""
    name = re.sub(r"[^\w.=-]", "_", f"{table.sweep.name}-{line.row.name}-seed{run.seed}")
    return f"{FOLDER}/{name}.html"


def has_page(run: Run) -> bool:
    return bool(run.path and run.result)


def write_run_pages(tables: Sequence[Table], out: Path) -> None:
    """A page for each run that has a result, in `out`/runs."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    for table in tables:
        for line in table.lines:
            for run in filter(has_page, line.runs):
                assert run.path
                text = template.render(
                    table=table,
                    line=line,
                    run=run,
                    seeds=[
                        (other.seed, Path(page_name(table, line, other)).name)
                        for other in line.runs
                        if has_page(other)
                    ],
                    figures=figures_of(table, run.result),
                    departures=departures(line.row.recipe, run.result),
                    config=flatten(run.result.get("config") or {}),
                    curves=curves_of(run.result),
                    repeat=repeat(table, line, run),
                    file=relative_address(run.path, folder),
                )
                write_atomically(out / page_name(table, line, run), text)


def figures_of(table: Table, result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The numbers of a run that a reader looks for first, each with its name."""
    wanted = {"valid_ppl": "perplexity, validation", "test_ppl": "perplexity, test"}
    wanted |= {metric.key: metric.label for metric in table.sweep.metrics if metric.key in result}
    wanted |= {"num_parameters": "weights"}
    found = [
        (name, format_number(key, result[key])) for key, name in wanted.items() if result.get(key) is not None
    ]
    found += [(name, f"{result[key]:g}") for key, name in EPOCHS.items() if result.get(key) is not None]
    if seconds := result.get("wall_seconds"):
        found.append(("minutes, the whole run", f"{seconds / 60:,.1f}"))
    if speed := result.get("tokens_per_second"):
        found.append(("tokens per second", f"{speed:,.0f}"))
    if memory := result.get("peak_memory_mb"):
        found.append(("memory, MiB", f"{memory:,.0f}"))
    return found


def repeat(table: Table, line: Line, run: Run) -> list[str]:
    """The commands that make this run again and score its test text exactly."""
    commands = []
    if table.sweep.command:
        only = f"hydra.sweeper.only=[{line.row.name}] sweep.seeds=[{run.seed}]"
        commands.append(f"{table.sweep.command} {only}")
    choices = run.result.get("choices", {})
    place = f"outputs/{choices.get('model')}/{choices.get('data')}/{run.result.get('name')}/seed={run.seed}"
    commands.append(f"python src/evaluate.py checkpoint={place}/best.ckpt split=test")
    return commands


def curves_of(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pictures of a run's epochs, each with its caption."""
    records = [
        record for record in result.get("metrics") or [] if isinstance(record.get("epoch"), int | float)
    ]
    drawn = []
    for title, keys, log in PICTURES:
        curves = {
            NAMES[key]: [
                (record["epoch"], record[key])
                for record in records
                if isinstance(record.get(key), int | float)
            ]
            for key in keys
        }
        curves = {name: points for name, points in curves.items() if len(points) > 1}
        if curves:
            drawn.append((draw_curves(title, curves, log), title))
    return drawn


def draw_curves(title: str, curves: Mapping[str, Sequence[tuple[float, float]]], log: bool) -> str:
    """Lines over the epochs, a name at the end of each; values far above the last ones are cut off.

    `log`: a logarithmic axis, which shows all values, where all are above 0.
    """
    values = [value for points in curves.values() for _, value in points]
    low, log = min(values), log and min(values) > 0
    far = math.inf if log else FAR * max(points[-1][1] for points in curves.values())
    high = min(max(values), far) or 1.0
    scale = math.log if log else float
    last = max(points[-1][0] for points in curves.values())
    first = min(points[0][0] for points in curves.values())
    span, room = (scale(high) - scale(low)) or 1.0, WIDTH - LEFT - 70

    def place(epoch: float, value: float) -> str:
        x = LEFT + room * (epoch - first) / ((last - first) or 1.0)
        y = FOOT - (FOOT - 12) * (scale(min(value, high)) - scale(low)) / span
        return f"{x:.1f},{y:.1f}"

    elements = [
        element(
            "line", x1=LEFT, y1=FOOT, x2=LEFT + room, y2=FOOT, stroke="currentColor", stroke_opacity="0.5"
        ),
        element("text", f"{high:.3g}", x=LEFT - 6, y=16, font_size=SIZE, text_anchor="end"),
        element("text", f"{low:.3g}", x=LEFT - 6, y=FOOT, font_size=SIZE, text_anchor="end"),
        element("text", f"{first:g}", x=LEFT, y=FOOT + 16, font_size=SIZE),
        element("text", f"epoch {last:g}", x=LEFT + room, y=FOOT + 16, font_size=SIZE, text_anchor="end"),
    ]
    names: list[float] = []
    for index, (name, points) in enumerate(curves.items()):
        path = " ".join(place(*point) for point in points)
        elements.append(
            element("polyline", points=path, fill="none", stroke=COLOURS[index], stroke_width=1.8)
        )
        y = float(place(*points[-1]).split(",")[1]) + 4
        y = y if all(abs(y - other) > SIZE for other in names) else max(names) + SIZE + 2
        names.append(y)
        if len(curves) > 1:
            elements.append(
                element("text", name, x=LEFT + room + 5, y=y, font_size=SIZE, fill=COLOURS[index])
            )
    return picture(title, WIDTH, HEIGHT, elements)
