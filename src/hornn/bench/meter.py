"""How the benchmark measures: times in turn, on a machine that does nothing else, and memory in processes of their
own."""

import gc
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hornn.bench.work import Work
from hornn.machine import peak_memory_mb

QUIET = 0.05  # cores that other processes may use in a round that counts
PATIENCE = 4  # times as many rounds as wanted, before a row is given up as never quiet

Row = dict[str, Any]
Sampler = Callable[[], float]  # does the work for a while, returns ms for once


def cpu_of_others(statistics_file: Path = Path("/proc/stat")) -> float | None:
    """Seconds of CPU that all but this process have used, up to a constant; None where the system does not tell.

    Other virtual machines on our cores count too. The file's first line holds clock ticks: user, nice, system,
    idle, iowait, irq, softirq, steal.
    """
    try:
        fields = statistics_file.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields[1:9])
    busy = user + nice + system + irq + softirq + steal
    return busy / os.sysconf("SC_CLK_TCK") - time.process_time() if busy else None


def clock_of(device: torch.device) -> Callable[[], float]:
    """The seconds that have passed, up to a constant; on a GPU once all that it was given to do is done."""
    if device.type != "cuda":
        return time.perf_counter

    def wait_and_read() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return wait_and_read


@contextmanager
def garbage_kept() -> Iterator[None]:
    """A context without garbage collection."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Meter(NamedTuple):
    """Takes times: `clock` in seconds, `others` the seconds of CPU that other processes have used (None: unknown)."""

    seconds: float = 0.25  # least length of a sample
    warm_up: int = 1  # times that the work is done before; a GPU records what it does for the fourth time
    clock: Callable[[], float] = time.perf_counter
    others: Callable[[], float | None] = cpu_of_others

    def sampler(self, work: Work) -> Sampler:
        """Warm up, and repeat the work as often as a sample's length asks for."""
        for _ in range(self.warm_up):
            work()
        started = self.clock()
        work()
        once = self.clock() - started
        count = max(1, math.ceil(self.seconds / once)) if once else 1

        def sample() -> float:
            started = self.clock()
            for _ in range(count):
                work()
            return 1e3 * (self.clock() - started) / count

        return sample

    def compare(self, ours: Sampler, other: Sampler, rounds: int) -> Row:
        """The two in turn until `rounds` quiet rounds are there, or `PATIENCE` times as many are over.

        A row that never got quiet keeps all its rounds. `quiet` is None where nothing is known of other
        processes: every round counts.
        """
        taken: list[tuple[float, float]] = []
        kept: list[tuple[float, float]] = []
        filtered = self.others() is not None
        with garbage_kept():
            while len(kept) < rounds and len(taken) < PATIENCE * rounds:
                before, started = self.others(), self.clock()
                taken.append((ours(), other()))
                elapsed, after = self.clock() - started, self.others()
                if before is None or after is None or after - before <= QUIET * elapsed:
                    kept.append(taken[-1])
        quiet = len(kept) == rounds
        samples = kept if quiet else taken
        ratios = [a / b for a, b in samples]
        return {
            "ours_ms": statistics.median(a for a, _ in samples),
            "other_ms": statistics.median(b for _, b in samples),
            "ratio": statistics.median(ratios),
            "spread": [min(ratios), max(ratios)],
            "rounds": len(samples),
            "dropped": len(taken) - len(kept),
            "quiet": quiet if filtered else None,
        }


def memory_of(make: Callable[[], Work], device: torch.device, times: int = 5) -> float:
    """MB that the peak rises by while the work is made and done a few times; in a process that did nothing else.

    On a GPU it is the peak of what torch has allocated there.
    """
    before = peak_memory_mb()
    work = make()
    for _ in range(times):
        work()
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return peak_memory_mb() - before


def memory_apart(make: Callable[[], Work], processes: int, device: torch.device) -> list[float]:
    """`memory_of` in fresh processes, one after the other, in rising order."""
    return sorted(apart(memory_of, make, device) for _ in range(processes))


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
