"""The figures that a section works out of its measurements."""

import pytest

from hornn.bench import meter, sections, work
from hornn.bench.meter import Meter
from hornn.bench.plan import QUICK
from hornn.bench.sections import Bench
from hornn.bench.work import Sizes, Variant


def test_memory_is_the_median_over_processes(monkeypatch):
    peaks = iter([30.0, 10.0, 50.0])
    monkeypatch.setattr(meter, "apart", lambda function, *arguments: next(peaks))
    row = sections.memory_beside([40.0, 60.0, 200.0], lambda: None)
    assert (row["ours_mb"], row["other_mb"], row["ratio"]) == (30.0, 60.0, 0.5)
    assert (row["ours_range"], row["other_range"]) == ([10.0, 50.0], [40.0, 200.0])


def test_gflop_of_a_step():
    network = work.build(Variant("hornn", backend="eager"), Sizes())
    gflop = sections.matrix_gflop(network, Sizes())
    assert gflop["head"] == pytest.approx(14.4)
    assert sum(gflop.values()) == pytest.approx(6e-9 * 600 * (10_000 * 400 + 400 * 400 + 3 * 400 * 400))


def test_the_roofline_of_known_steps(monkeypatch):
    """At 100 GFLOP/s, 1 + 3 GFLOP take 40 ms."""
    monkeypatch.setattr(sections, "resolve_precision", lambda *_: "fp32")
    step = {
        "section": "step",
        "work": "training step",
        "ours": "rnn",
        "backend": "eager",
        "precision": "auto",
    }
    step |= {"scan": "eager", "dtype": "fp32", "loop_dtype": "fp32", "other": "nn.RNN"}
    step |= {"ours_ms": 80.0, "gflop": {"cells": 1.0, "head": 3.0}}
    left_out = [{**step, "missing": "why"}, {**step, "other": "FOFE loop"}, {**step, "section": "order"}]
    plan = QUICK._replace(product=50)
    once = 2e-9 * 50**3 / 100  # seconds of a product at that speed
    ticks = iter(n * once for n in range(100))
    running = Bench(plan, Meter(0.0, clock=lambda: next(ticks)), [step, *left_out])
    peak, row = sections.roofline(running)
    assert peak["speed"] == pytest.approx(100)
    assert (row["gflop"], row["speed"]) == (4.0, pytest.approx(50))
    assert (row["bound_ms"], row["reached"]) == (pytest.approx(40), pytest.approx(0.5))


def test_published_seconds_are_those_of_the_thesis():
    rows = {key: seconds for key, seconds in sections.PUBLISHED.items() if seconds}
    assert rows["rnn", None] == sections.RNN_SECONDS
    assert len(rows) == 6
