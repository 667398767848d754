"""The jobs that the last line of a sweep names."""

from pathlib import Path

import pytest

from hornn.run.identity import Identity
from hornn.sweep.job import Job
from hornn.sweep.outcome import conclude, name_jobs


def test_five_jobs_are_named_and_the_others_counted() -> None:
    jobs = [
        Job([f"r{seed}"], [], Identity({}, {}, {}, "a", seed, Path("a"), False), {}) for seed in range(1, 8)
    ]
    five = "; ".join(f"r{seed} seed={seed}" for seed in range(1, 6))
    assert name_jobs(jobs[:5]) == five
    assert name_jobs(jobs) == f"{five}; and 2 more"


@pytest.mark.parametrize(
    ("errors", "advised"),
    [
        (["out of memory"], True),
        (["a/seed=1 holds an unfinished run of other code: overwrite=true starts anew by this code"], False),
        (["holds an unfinished run of other code: overwrite=true starts anew", "out of memory"], True),
    ],
)
def test_no_retry_is_advised_where_each_job_names_its_remedy(errors: list[str], advised: bool) -> None:
    identity = Identity({}, {}, {}, "a", 1, Path("a"), False)
    jobs = [Job(["r"], [], identity, {}, status="failed", error=error) for error in errors]
    with pytest.raises(ValueError, match="jobs failed") as found:
        conclude(jobs, "Try again")
    assert ("Try again" in str(found.value)) == advised
