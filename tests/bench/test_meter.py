"""Rounds that are quiet, samples, and the memory and the time that others use."""

import gc
from functools import partial

import pytest
import torch

from hornn.bench import meter
from hornn.bench.meter import PATIENCE, Meter


class Machine:
    """Time that passes only in samples; `noise` gives the cores that others use in each round."""

    def __init__(self, noise, ours=2.0, other=4.0):
        self.now, self.used = 0.0, 0.0
        self.noise, self.lengths = iter(noise), {"ours": ours, "other": other}

    def sample(self, side):
        def take():
            if side == "ours":
                self.load = next(self.noise)
            seconds = self.lengths[side] * (1 + self.load)
            self.now += seconds
            self.used += self.load * seconds
            return 1e3 * seconds

        return take

    def compare(self, rounds):
        meter = Meter(clock=lambda: self.now, others=lambda: self.used)
        return meter.compare(self.sample("ours"), self.sample("other"), rounds)


def test_rounds_with_other_load_are_dropped():
    row = Machine([0.0, 0.5, 0.04, 0.06, 0.0]).compare(rounds=3)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (3, 2, True)
    assert row["ours_ms"] == pytest.approx(2000)
    assert row["other_ms"] == pytest.approx(4000)


def test_a_row_that_never_gets_quiet_keeps_all_rounds_and_says_so():
    rounds = 2
    row = Machine([0.5] * rounds * PATIENCE).compare(rounds)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (rounds * PATIENCE, rounds * PATIENCE, False)
    assert row["ours_ms"] == pytest.approx(3000)
    row = Machine([0.0, *[0.5] * (rounds * PATIENCE - 1)]).compare(rounds)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (rounds * PATIENCE, rounds * PATIENCE - 1, False)


def test_without_knowledge_of_others_every_round_counts():
    machine = Machine([0.5, 0.5])
    meter = Meter(clock=lambda: machine.now, others=lambda: None)
    row = meter.compare(machine.sample("ours"), machine.sample("other"), 2)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (2, 0, None)


def test_the_ratio_is_the_median_over_rounds_not_the_ratio_of_medians():
    ours, other = iter([1.0, 6.0, 3.0]), iter([1.0, 2.0, 4.0])
    row = Meter(clock=lambda: 0.0, others=lambda: None).compare(lambda: next(ours), lambda: next(other), 3)
    assert (row["ours_ms"], row["other_ms"]) == (3.0, 2.0)
    assert row["ratio"] == 1.0
    assert row["spread"] == [0.75, 3.0]


def test_a_sample_repeats_short_work_and_gives_the_time_of_once():
    now, calls = [0.0], []

    def work():
        calls.append(1)
        now[0] += 0.1

    sample = Meter(seconds=0.25, clock=lambda: now[0]).sampler(work)
    calls.clear()
    assert sample() == pytest.approx(100)
    assert len(calls) == 3


def test_no_garbage_is_collected_while_samples_are_taken():
    seen = []

    def sample():
        seen.append(gc.isenabled())
        return 1.0

    Meter(others=lambda: None).compare(sample, sample, 1)
    assert seen == [False, False]
    assert gc.isenabled()


def test_cpu_of_others_is_what_the_system_counts_less_our_own(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9999 777 4 5 6 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    monkeypatch.setattr(meter.os, "sysconf", lambda name: {"SC_CLK_TCK": 10}[name])
    monkeypatch.setattr(meter.time, "process_time", lambda: 1.5)
    assert meter.cpu_of_others(stat) == pytest.approx(16.5 - 1.5)


def test_a_system_that_does_not_tell_is_known_as_such(tmp_path):
    assert meter.cpu_of_others(tmp_path / "absent") is None
    (tmp_path / "stat").write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
    assert meter.cpu_of_others(tmp_path / "stat") is None


def allocate(megabytes):
    held = []
    return lambda: held or held.append(b"x" * (megabytes * 2**20))


@pytest.mark.slow
@pytest.mark.thorough
def test_memory_is_the_rise_of_the_peak_in_a_process_of_its_own():
    rise = meter.apart(meter.memory_of, partial(allocate, 64), torch.device("cpu"))
    assert 64 <= rise < 80
