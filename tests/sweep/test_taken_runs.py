"""Runs that another process works on are waited for."""

import fcntl
from pathlib import Path

import pytest

from sweep.mini import Launch, Start, recorded, starts, statuses, wait_for

pytestmark = pytest.mark.slow
ONE_EPOCH = "trainer.max_epochs=1"


def test_the_same_sweep_twice_at_once_does_no_work_twice(start: Start) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", "trainer.max_epochs=2")
    launchers = [start(*table, FAKE_EPOCH="0.3"), start(*table, FAKE_EPOCH="0.3")]
    outs = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], outs
    assert all(out.endswith("mini: 4 of 4 done\n") for out in outs)
    assert all(len(lines) == 1 for lines in starts().values())
    assert sum(out.count(": elsewhere") for out in outs) > 0
    assert statuses() == ["done"] * 4


@pytest.mark.thorough
def test_two_launchers_overwrite_each_run_once(start: Start, launch: Launch) -> None:
    table = ("sweeps=mini", "sweep.seeds=[1,2]", "trainer.max_epochs=2")
    assert launch(*table).code == 0
    launchers = [start(*table, "overwrite=true", FAKE_EPOCH=epoch, FAKE_GATE="1") for epoch in ("0.1", "3")]
    # While one is at a long job, the other ends all the rest.
    wait_for(lambda: statuses().count("running") == 2)
    Path("gate").touch()
    outs = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], outs
    assert [len(lines) for lines in starts().values()] == [2] * 4, outs


@pytest.mark.thorough
def test_a_run_that_a_killed_launcher_was_overwriting_is_continued(start: Start, launch: Launch) -> None:
    table = ("sweeps=mini", "hydra.sweeper.only=[elman]", "trainer.max_epochs=4")
    assert launch(*table).code == 0
    words = (*table, "overwrite=true")
    first = start(*words, FAKE_EPOCH="0.7", FAKE_GATE="1")
    wait_for(lambda: statuses() == ["running"])
    second = start(*words)
    assert second.stdout
    assert second.stdout.readline() == "mini: 0 of 1 done, 1 elsewhere\n"
    Path("gate").touch()
    wait_for(lambda: len(next(iter(starts().values()))) == 2)
    wait_for(lambda: any(Path("outputs").rglob("metrics.csv")))
    first.kill()
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0, out
    assert starts()[recorded()["elman", 1].run_dir][-1].split()[0] in ("epoch=2", "epoch=3", "epoch=4")


@pytest.mark.thorough
def test_a_run_that_somebody_started_by_hand_is_waited_for(start: Start, launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH, "overwrite=true", FAKE_FAIL="1").code == 2
    run_dir = Path(recorded()["elman", 1].run_dir)
    with (run_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        launcher = start("sweeps=mini", ONE_EPOCH, "hydra.sweeper.retry_failed=true")
        wait_for(lambda: statuses() == ["running", "done"])
        assert launcher.poll() is None
        assert len(starts()[str(run_dir)]) == 1
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    assert "elman seed=1: elsewhere" in out
    assert statuses() == ["done"] * 2


def test_a_job_that_finds_its_run_taken_is_waited_for(start: Start) -> None:
    launcher = start("sweeps=mini", ONE_EPOCH, FAKE_GATE="1")
    wait_for(lambda: Path("outputs/sweeps/mini.json").exists() and statuses() == ["running", "queued"])
    with Path(recorded()["elman", 1].run_dir, ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path("gate").touch()
        wait_for(lambda: statuses() == ["running", "done"])
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out
    changes = [line.rpartition(": ")[2] for line in out.splitlines() if line.startswith("elman")]
    assert [change.partition(";")[0] for change in changes[:3]] == ["running", "elsewhere", "running"]
    assert statuses() == ["done"] * 2
