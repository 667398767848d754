"""A run over time, as its result file tells it."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from hornn.metrics import bits
from hornn.reporting.lines import Line, epoch_seconds, shared_its_gpu
from hornn.reporting.runs import Run
from hornn.reporting.sweeps import Metric
from hornn.result import score_of

UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def time_unit(seconds: float) -> tuple[str, float]:
    """The largest unit of time that `seconds` is at least two of, and its length."""
    return next((unit, size) for unit, size in UNITS if seconds >= 2 * size or size == 1)


def learning_curve(run: Run, metric: Metric) -> list[tuple[float, float, float]]:
    """(epoch, seconds so far, validation score) of each epoch that says all three."""
    records = [
        (record["epoch"], record["seconds"], score)
        for record in run.result.get("metrics") or []
        if isinstance(score := score_of(record, "valid"), int | float)
        and all(isinstance(record.get(key), int | float) for key in ("epoch", "seconds"))
    ]
    times = accumulate(float(seconds) for _, seconds, _ in records)
    in_bits = metric.key == "test_bpc"
    return [
        (epoch, time, bits(math.log(score)) if in_bits else score)
        for (epoch, _, score), time in zip(records, times, strict=True)
    ]


class Times(NamedTuple):
    """Seconds that the best run of each row trained, without pauses, on one device: other devices do not compare."""

    seconds: dict[str, float]
    caption: str  # whose times they are


def training_times(lines: Sequence[Line], metric: Metric) -> Times:
    """Of the device on which most of these rows ran."""
    best = {
        line.row.name: line.best
        for line in lines
        if line.best and learning_curve(line.best, metric) and not shared_its_gpu(line.best.result)
    }
    places = {name: str(run.result.get("device")) for name, run in best.items()}
    if not places:
        return Times({}, "")
    ((device, count),) = Counter(places.values()).most_common(1)
    seconds = {
        name: len(best[name].result["metrics"]) * (epoch_seconds(best[name].result) or 0.0)
        for name, place in places.items()
        if place == device
    }
    others = len(places) - count
    elsewhere = f"; {others} {'row' if others == 1 else 'rows'} ran on another device" if others else ""
    return Times(seconds, f"the time that the best run of each row trained, on {device}{elsewhere}")
