"""The numbers of runs and rows that the page's script shows, their texts and their names."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from hornn.reporting.lines import SECONDS, Line, epoch_seconds, on_one_device, tells
from hornn.reporting.numbers import format_bound, format_number, is_count
from hornn.reporting.running import in_words
from hornn.reporting.runs import Run
from hornn.reporting.scores import is_at_limit, metric_value
from hornn.reporting.tables import Table

SPLITS = {"test": "test", "valid": "validation", "train": "training"}  # in the order of their scores
# Of a unit: its words, and whether less of it is better (-1), or more.
UNITS = {
    "ppl": ("perplexity", -1),
    "bpc": ("bits per character", -1),
    "nll": ("nats per frame", -1),
    "accuracy": ("accuracy of frames", 1),
    "wer": ("word errors %, shipped grammar", -1),
    "wer_bigram": ("word errors %, bigram", -1),
}
COSTS = {
    "num_parameters": "weights",
    "epochs": "epochs",
    "best_epoch": "best epoch",
    "wall_seconds": "time, the whole run",
    "tokens_per_second": "tokens per second",
    "peak_memory_mb": "memory, MiB",
}
CURVES = {
    "lr": "learning rate",
    "grad_norm": "gradient's norm, mean",
    "max_grad_norm": "gradient's norm, largest",
}
LAST_EPOCH = "metrics.-1."
NOT_DRAWN = {"epoch", "step", "seconds", "tokens_per_second"}


def own_numbers(result: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """Every score that a result holds, and what it cost: each with its text."""
    found = [key for key in result if key.partition("_")[0] in SPLITS and key.partition("_")[2] in UNITS]
    keys = [key for key in found if not (key.endswith("_nll") and key.replace("_nll", "_ppl") in found)]
    costs = [key for key in COSTS if tells(result, key)]
    pairs = [(key, metric_value(result, key)) for key in [*keys, *costs]]
    pairs.append((SECONDS, epoch_seconds(result)))  # as tables take it
    return {key: (shorter(value), number_text(key, value)) for key, value in pairs if value is not None}


def number_text(key: str, value: float) -> str:
    if key == "wall_seconds":
        return in_words(value)
    return f"{value:,.0f}" if key in COSTS else format_number(key, value)


def scores_of_table(table: Table, run: Run) -> dict[str, tuple[float, str]]:
    keys = [metric.key for metric in table.sweep.metrics if tells(run.result, metric.key)]
    found = {key: metric_value(run.result, key) for key in keys if key != SECONDS}
    return {
        key: (
            shorter(value),
            format_bound(value) if is_at_limit(run.result, key) else number_text(key, value),
        )
        for key, value in found.items()
        if value is not None
    }


def means(line: Line, keys: Iterable[str]) -> dict[str, tuple[float, str]]:
    """The means over the seeds that a row's numbers come from, with their standard deviations.

    A metric of its table is what the table shows.
    """
    values = {key: values_of(line, key) for key in keys}
    return {key: (shorter(fmean(each)), mean_text(key, each, line)) for key, each in values.items() if each}


def values_of(line: Line, key: str) -> Sequence[float]:
    """A row's number of each seed; none where they do not compare."""
    if key in line.scores:
        return line.scores[key].values
    if key == SECONDS:
        return () if line.seconds is None else (line.seconds,)
    told = [run for run in line.measured if on_one_device(key, [line]) and tells(run.result, key)]
    return [value for run in told if (value := metric_value(run.result, key)) is not None]


def mean_text(key: str, values: Sequence[float], line: Line) -> str:
    if any(is_at_limit(run.result, key) for run in line.measured):
        return format_bound(fmean(values))
    scatters = len(values) > 1 and key not in COSTS and not is_count(key)
    return f"{number_text(key, fmean(values))}{f' ± {number_text(key, stdev(values))}' if scatters else ''}"


def shorter(value: float, digits: int = 5) -> float:
    return float(f"{value:.{digits}g}")


def known_name(key: str) -> str:
    """The name of a number that results hold; empty for one that nobody named."""
    split, _, unit = key.partition("_")
    if split in SPLITS and unit in UNITS:
        return f"{UNITS[unit][0]}, {SPLITS[split]}"
    if key.startswith(LAST_EPOCH) and (name := known_name(key.removeprefix(LAST_EPOCH))):
        return f"{name}, last epoch"
    return COSTS.get(key) or CURVES.get(key, "")


def measures(tables: Sequence[Table], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Key -> its name and whether less (-1) or more (1) of it is better, in the order in which they are shown.

    The name is one that holds in all tables; `page_data` has the words of each table beside it.
    """
    found = dict.fromkeys(key for run in runs for key in (*run["numbers"], *run["curves"]))
    metrics = [metric for table in tables for metric in table.sweep.metrics]
    own, labels = {metric.key: metric for metric in metrics}, dict[str, set[str]]()
    for metric in metrics:
        labels.setdefault(metric.key, set()).add(metric.label)
    named = {}
    for key in sorted(found, key=place_shown):
        if key in NOT_DRAWN - {"tokens_per_second"}:
            continue
        direction = UNITS.get(key.partition("_")[2], ("", 0))[1]
        if key in own and key not in COSTS and not direction and own[key].lower_is_better is not None:
            direction = -1 if own[key].lower_is_better else 1
        agreed = own[key].label if len(labels.get(key, ())) == 1 else key.replace("_", " ")
        named[key] = (known_name(key) or agreed, direction)
    return named


def place_shown(key: str) -> int:
    """Scores of the test text come first, then of validation, of training and others, then costs, then the rest."""
    split, order = key.partition("_")[0], [*SPLITS, "others", *COSTS, SECONDS, *CURVES]
    return order.index(split if split in SPLITS else key if key in order else "others")
