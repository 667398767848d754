"""How a sweep ends where not all its runs are done."""

from collections.abc import Sequence

from hornn.sweep.job import Job

NAMED = 5  # jobs that the last line names


def conclude(jobs: Sequence[Job], remedy: str) -> None:
    """Raise ValueError naming the jobs that failed, or, where none failed, the jobs that were cut off.

    remedy: what a person can do about the jobs that failed.
    """
    if failed := [job for job in jobs if job.status == "failed"]:
        advice = "" if all(job.in_the_way for job in failed) else f". {remedy}"
        raise ValueError(f"{len(failed)} of {len(jobs)} jobs failed: {name_jobs(failed)}{advice}")
    if cut_off := [job for job in jobs if job.cut_off]:
        raise ValueError(
            f"{len(cut_off)} of {len(jobs)} jobs were terminated: {name_jobs(cut_off)}. The same command continues them"
        )


def name_jobs(jobs: Sequence[Job]) -> str:
    names = [f"{job.label} seed={job.seed}" for job in jobs]
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return "; ".join([*names[:NAMED], *more])
