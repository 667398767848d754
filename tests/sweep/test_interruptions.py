"""Launchers and jobs that are interrupted or killed: nothing is left at work, and all can be continued."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sweep.mini import Start, is_alive, pid_of, recorded, starts, statuses, wait_for

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_a_job_killed_by_the_kernel(start: Start) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=3", FAKE_EPOCH="0.4")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    os.kill(pid_of("elman"), signal.SIGKILL)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 2
    assert "elman seed=1: failed: killed (signal 9): out of memory? outputs/rnn/pydoc/" in out
    assert "1 of 2 jobs failed: elman seed=1" in err
    assert statuses() == ["failed", "done"]

    launcher = start("sweeps=mini", "trainer.max_epochs=3", "hydra.sweeper.retry_failed=true")
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert starts()[recorded()["elman", 1].run_dir][1].split()[0] in ("epoch=2", "epoch=3")


@pytest.mark.each(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_somebody_ends_counts_as_cut_off(start: Start, number: signal.Signals) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=3", FAKE_EPOCH="0.4")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    os.kill(pid_of("elman"), number)
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 124
    assert err.endswith("1 of 2 jobs were cut off: elman seed=1. The same command continues them\n")
    assert statuses() == ["queued", "done"]

    launcher = start("sweeps=mini", "trainer.max_epochs=3")
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert starts()[recorded()["elman", 1].run_dir][1].split()[0] in ("epoch=2", "epoch=3")


def test_who_gave_overwrite_continues_without_it(start: Start) -> None:
    """With it the finished runs would be trained anew, too."""
    launcher = start("sweeps=mini", "trainer.max_epochs=3", "overwrite=true", FAKE_EPOCH="0.4")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    os.kill(pid_of("elman"), signal.SIGTERM)
    _, err = launcher.communicate(timeout=60)
    assert err.endswith("elman seed=1. The same command without overwrite=true continues them\n")


def test_jobs_end_with_a_killed_launcher_and_continue_with_the_next(start: Start) -> None:
    table = ("sweeps=mini", "trainer.max_epochs=4", "hydra.launcher.jobs=2")
    launcher = start(*table, FAKE_EPOCH="1")
    wait_for(lambda: len(list(Path("outputs").rglob("metrics.csv"))) == 2)
    jobs = [pid_of("elman"), pid_of("second-order")]
    launcher.kill()
    wait_for(lambda: not any(map(is_alive, jobs)), 10)
    assert statuses() == ["running"] * 2
    assert not any(Path("outputs").rglob("result.json"))
    assert "the launcher is gone" in next(Path("outputs").rglob("train.log")).read_text()

    launcher = start(*table)
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert statuses() == ["done"] * 2
    for lines in starts().values():
        assert lines[0].startswith("epoch=1 ")
        assert lines[1].split()[0] in ("epoch=2", "epoch=3")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_sweep_can_be_continued(start: Start, number: signal.Signals, code: int) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=50", FAKE_EPOCH="0.5")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    job = pid_of("elman")
    launcher.send_signal(number)
    out, _ = launcher.communicate(timeout=20)
    assert launcher.returncode == code
    assert not is_alive(job)
    assert statuses() == ["queued"] * 2
    assert out.endswith("mini: 0 of 2 done, 2 queued\n")


@pytest.mark.thorough
def test_a_second_interrupt_kills(start: Start) -> None:
    launcher = start("sweeps=mini", "trainer.max_epochs=50", FAKE_EPOCH="0.5", FAKE_DEAF="1")
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    job = pid_of("elman")
    launcher.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        launcher.wait(1)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=20)
    assert launcher.returncode == 130
    assert not is_alive(job)
    assert statuses() == ["queued"] * 2
