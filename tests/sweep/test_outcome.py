"""The jobs that the last line of a sweep names."""

from pathlib import Path

from hornn.run.identity import Identity
from hornn.sweep.job import Job
from hornn.sweep.outcome import name_jobs


def test_five_jobs_are_named_and_the_others_counted() -> None:
    jobs = [
        Job([f"r{seed}"], [], Identity({}, {}, {}, "a", seed, Path("a"), False), {}) for seed in range(1, 8)
    ]
    five = "; ".join(f"r{seed} seed={seed}" for seed in range(1, 6))
    assert name_jobs(jobs[:5]) == five
    assert name_jobs(jobs) == f"{five}; and 2 more"
