"""A run over time, as its result file tells it."""

import math
from itertools import accumulate

from hornn.metrics import bits
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
