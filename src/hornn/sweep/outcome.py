"""How a sweep ends where not all its runs are done."""

from collections.abc import Sequence

from rich.console import Console

from hornn.command_line.ending import UNFINISHED, same_command
from hornn.result import read_result
from hornn.run.code import CODE, other_code
from hornn.sweep.job import Job

NAMED = 5  # jobs that the last line names


class CutOff(ValueError):
    """Nothing failed, and not everything is done."""

    exit_code = UNFINISHED


def conclude(jobs: Sequence[Job], remedy: str) -> None:
    """Raise ValueError naming the jobs that failed. Where none failed, raise CutOff naming the jobs that were cut off.

    remedy: what a person can do about the jobs that failed.
    """
    if failed := [job for job in jobs if job.status == "failed"]:
        told = [job.in_the_way or "overwrite=true" in (job.error or "") for job in failed]
        advice = "" if all(told) else f". {remedy}"
        raise ValueError(f"{len(failed)} of {len(jobs)} jobs failed: {name_jobs(failed)}{advice}")
    if cut_off := [job for job in jobs if job.cut_off]:
        raise CutOff(
            f"{len(cut_off)} of {len(jobs)} jobs were cut off: {name_jobs(cut_off)}. "
            f"{same_command().capitalize()} continues them"
        )


def tell_other_code(jobs: Sequence[Job], console: Console) -> None:
    """Say which jobs are skipped as done though their runs were computed by other code than the model's by now."""
    found = [(job, changed) for job in jobs if job.status == "done" and (changed := changed_code(job))]
    if found:
        names = name_jobs([job for job, _ in found])
        text = f"warning: finished runs of other code are skipped ({found[0][1]}): {names}"
        console.print(
            f"{text}; overwrite=true trains them anew", highlight=False, soft_wrap=True, markup=False
        )


def changed_code(job: Job) -> str:
    """How the code of the job's model differs by now from the code of its result, in words; empty without one."""
    return other_code((read_result(job.run_dir) or {}).get(CODE), job.identity.code)


def name_jobs(jobs: Sequence[Job]) -> str:
    names = [f"{job.label} seed={job.seed}" for job in jobs]
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return "; ".join([*names[:NAMED], *more])
