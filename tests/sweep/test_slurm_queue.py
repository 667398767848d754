"""What is said of Slurm's jobs from what `squeue` answers; `squeue` is a stand-in that prints a file."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from hornn.run.identity import Identity
from hornn.sweep import slurm_queue
from hornn.sweep.job import Job
from hornn.sweep.onlooker import Onlooker
from hornn.sweep.record import Record
from hornn.sweep.slurm_queue import End, Queue


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that `squeue` prints; without it, the command fails, as it does where Slurm does not answer."""
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\necho slurm is away >&2\nexec cat {tmp_path / 'answer'} 2>/dev/null\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_queue, "LOOK", 0.0)
    return tmp_path / "answer"


@pytest.fixture
def queue(answer: Path, tmp_path: Path) -> Queue:
    queue = Queue(str(tmp_path / "%j"))
    for job_id in ("7", "7_0", "7_1", "7_2"):  # submitit registers the array, too
        queue.register_job(job_id)
    return queue


def ends(queue: Queue) -> list[End | None]:
    return [queue.end_of(number) for number in range(3)]


def test_jobs_that_wait_or_run_have_no_end(
    queue: Queue, answer: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer.write_text("7_0 RUNNING 0 None\n7_1 PENDING 0 None\n7_2 REQUEUED 0 None\n8 FAILED 256 None\n")
    assert ends(queue) == [None, None, None]
    assert not queue.is_done("7_1")
    answer.unlink()
    assert ends(queue) == [None, None, None], "Slurm does not answer"
    assert capfd.readouterr() == ("", "")


def test_a_job_that_is_ended_is_told_at_once(queue: Queue, answer: Path, tmp_path: Path) -> None:
    (tmp_path / "7_2").mkdir()
    (tmp_path / "7_2" / "7_2_0_log.err").write_text(
        "Traceback\nModuleNotFoundError: No module named 'hornn'\n"
    )
    answer.write_text("7_0 CANCELLED 15 None\n7_1 NODE_FAIL 0 None\n7_2 FAILED 256 None\n")
    assert ends(queue) == [
        End("Slurm's job 7_0: CANCELLED", False),
        End("Slurm's job 7_1: NODE_FAIL", False),
        End("Slurm's job 7_2: FAILED: ModuleNotFoundError: No module named 'hornn'", True),
    ]
    answer.write_text("7_1 PENDING 0 None\n")
    assert [end and end.said for end in ends(queue)][:2] == ["Slurm's job 7_0: CANCELLED", None], (
        "queued again"
    )


def test_a_job_that_a_signal_has_ended_did_not_fail_by_itself(queue: Queue, answer: Path) -> None:
    """The exit code as older versions of Slurm give it, a wait status, and as `code:signal`."""
    ended = [End(f"Slurm's job 7_{number}: TERMINATED", False) for number in range(3)]
    answer.write_text("7_0 FAILED 15 None\n7_1 FAILED 36608 None\n7_2 FAILED 0:15 None\n")
    assert ends(queue) == ended
    answer.write_text("7_0 FAILED 143:0 None\n7_1 FAILED 9 None\n7_2 FAILED 1:0 None\n")
    assert [end and end.by_itself for end in ends(queue)] == [False, True, True]


def test_a_job_that_left_nothing_is_told_after_a_while(
    queue: Queue, answer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer.write_text("7_0 COMPLETED 0 None\n7_1 RUNNING 0 None\n")  # and of 7_2 the queue knows nothing
    assert queue.is_done("7_2")
    assert ends(queue) == [None, None, None]
    monkeypatch.setattr(slurm_queue, "GRACE", -1.0)
    assert ends(queue) == [
        End("Slurm's job 7_0 is gone and left no result", False),
        None,
        End("Slurm's job 7_2 is gone and left no result", False),
    ]


def test_a_single_job(answer: Path) -> None:
    queue = Queue("%j")
    assert queue.end_of(0) is None, "nothing is submitted yet"
    queue.register_job("9")
    answer.write_text("9 TIMEOUT 0 None\n")
    assert queue.end_of(0) == End("Slurm's job 9: TIMEOUT", False)
    queue.wait()


def test_why_a_job_does_not_start(queue: Queue, answer: Path) -> None:
    """Reasons that pass by themselves are none."""
    answer.write_text("7_0 PENDING 0 PartitionTimeLimit\n7_1 PENDING 0 Priority\n7_2 RUNNING 0 None\n")
    assert [queue.reason_of(number) for number in range(3)] == ["PartitionTimeLimit", None, None]
    answer.write_text("7_0 RUNNING 0 None\n7_1 PENDING 0 (a partition that is down)\n")
    assert [queue.reason_of(number) for number in range(3)] == [None, "(a partition that is down)", None]


def test_a_reason_is_told_once(
    queue: Queue, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    identity = Identity({}, {}, {}, "aaaaaaaaaa", 1, Path("outputs/one"), False)
    record, jobs = Record("mini"), [Job([name], [], identity, {"trainer": {}}) for name in ("one", "two")]
    record.merge([entry for job in jobs for entry in job.entries()])
    answer.write_text("7_0 PENDING 0 PartitionTimeLimit\n7_1 PENDING 0 PartitionTimeLimit\n")
    with Onlooker(record, jobs, Console(file=said), False, queue) as onlooker:
        onlooker.look()
        onlooker.look()
    line = "one seed=1: queued: Slurm does not start the job, and 1 more: PartitionTimeLimit\n"
    assert said.getvalue().count("PartitionTimeLimit") == said.getvalue().count(line) == 1
