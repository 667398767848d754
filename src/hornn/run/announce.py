"""What a person sees of a run before it starts, after each epoch, and after it ended."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from hornn.data.base import Data
from hornn.metrics import Units
from hornn.result import RESULT

# What it prints holds paths and words of the user's, as they are.
console = Console(markup=False, highlight=False, emoji=False)


def announce(run_dir: Path, model: str, size: str, data: Data, notes: Sequence[str], resume: bool) -> None:
    """The model with its `size`, its data, what else is to be noted, and where it all goes."""
    title = Text.assemble((model, "bold"), " on ", (data.name, "bold"), f": {size}")
    console.print(title)
    first, *others = data.summary()
    for line in (first, *notes, *others):
        tell(f"  {line}")
    console.print(f"  {'continues in' if resume else 'writes to'} {run_dir}", soft_wrap=True)


def tell(line: str) -> None:
    """Print a line of `Data.summary` or `Data.remarks`; one that warns is yellow."""
    style = "yellow" if line.lstrip().startswith("warning: ") else None
    console.print(line, style=style, soft_wrap=True)


def describe_epoch(record: Mapping[str, float], units: Units, is_best: bool) -> str:
    """An epoch in one line, which fits 80 columns; `explain_epochs` says what it shows."""
    train, valid = (f"{units.show(record[f'{split}_{units.key}']):>7}" for split in ("train", "valid"))
    accuracy = f" {record['valid_accuracy']:6.2%}" if units.accuracy else ""
    return (
        f"epoch {record['epoch']:>3}  lr {record['lr']:<7.4g} train {train}"
        f"  valid {valid}{' *' if is_best else '  '}{accuracy}"
        f" {record['tokens_per_second']:>8,.0f}/s {record['seconds']:6.1f} s"
    )


def explain_epochs(units: Units) -> str:
    """What stands in the lines of `describe_epoch`, to be said once above the first of them."""
    accuracy = "; %: accuracy" if units.accuracy else ""
    return f"  train, valid: {units.score}; *: the best so far{accuracy}; /s: {units.target}s"


def conclude(
    run_dir: Path, result: Mapping[str, Any], units: Units, how: str, remarks: Sequence[str] = ()
) -> None:
    """How the test split was scored, the scores, the scores of simple predictors, `remarks`, and the result's path."""
    baselines = result["baselines"]
    valid, test = (f"{split}_{units.key}" for split in ("valid", "test"))
    rows = {result["choices"]["model"]: result, **baselines}
    width = max(12, len(units.score), *map(len, rows))
    console.print(how, soft_wrap=True)
    accuracy = f"  {'accuracy':>9}" if units.accuracy else ""
    console.print(f"{units.score:>{width}}  {'valid':>9}  {'test':>9}{accuracy}", style="bold")
    for name, figures in rows.items():
        share = figures.get("test_accuracy")
        shown = f"  {share:9.2%}" if share is not None else ""
        console.print(
            f"{name:>{width}}  {units.show(figures[valid]):>9}  {units.show(figures[test]):>9}{shown}",
        )
    for line in remarks:
        tell(line)
    simplest = next(iter(baselines))
    if result[valid] > baselines[simplest][valid] and (records := result.get("metrics")):
        note = f"worse than the {simplest}"
        if "lr" in records[-1]:  # counts have no rate and make no updates
            steps, trainer = records[-1]["step"], result["config"]["trainer"]
            in_time = records[-1]["epoch"] == trainer.get("max_epochs") or steps == trainer.get("max_steps")
            longer = "train longer (trainer.max_epochs, trainer.max_steps)"
            other = "give its schedule or its callback more patience, or try another optimizer.lr"
            note += (
                f" after {steps:,} update{'s' * (steps != 1)}: it has learned no context yet; "
                f"{longer if in_time else other}"
            )
        console.print(note, style="yellow", soft_wrap=True)
    console.print(f"{run_dir / RESULT}", soft_wrap=True)
    if (run_dir / "wandb").is_dir():
        console.print(f"browse: wandb leet {shlex.quote(str(run_dir / 'wandb'))}", soft_wrap=True)
