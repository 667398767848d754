"""Disks that are full, read-only or slow: one line says so, nothing is lost, and with room the same command goes on."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.commands import ForkServer
from faults.draws import cases, spread
from faults.places import fault_of
from faults.same import assert_same_run, left_behind
from faults.trainings import Trainings


@pytest.fixture(scope="module")
def trainings(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    return Trainings(server, tmp_path_factory.mktemp("disks"))


@pytest.mark.each(3)
@pytest.mark.parametrize("number", cases(2, 2.0))
def test_full_from_a_write_on(server: ForkServer, trainings: Trainings, tmp_path: Path, number: int) -> None:
    run_dir, place = tmp_path / "run", spread("full", number, trainings.writes)
    words = trainings.words(run_dir)
    ended = server.run("train", *words, fault={"kind": "full", "at": place, "below": str(tmp_path)})
    assert fault_of(ended, refused=False) is None, fault_of(ended, refused=False)
    assert left_behind(run_dir) == []
    trainings.go_on(run_dir)
    assert_same_run(trainings.whole, run_dir)


def test_slow(server: ForkServer, trainings: Trainings, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    ended = server.run("train", *trainings.words(run_dir), fault={"kind": "slow", "below": str(tmp_path)})
    assert (ended.code, ended.err) == (0, "")
    assert_same_run(trainings.whole, run_dir)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 KiB, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


@pytest.mark.faults
def test_a_real_full_disk(server: ForkServer, trainings: Trainings, disk: Path) -> None:
    """Of growing size, until the run fits: each start gets farther, or says in one line why it does not."""
    run_dir = disk / "run"
    for size in (8, 16, 32, 48, 64, 96, 128, 256, 4096):
        remount(disk, f"size={size}k")
        ended = server.run("train", *trainings.words(run_dir))
        if ended.code == 0:
            break
        fault = fault_of(ended)
        assert fault is None, f"{size} KiB: {fault}"
    assert_same_run(trainings.whole, run_dir)


@pytest.mark.faults
def test_a_folder_that_becomes_read_only(server: ForkServer, trainings: Trainings, disk: Path) -> None:
    remount(disk, "size=4m")
    run_dir = disk / "run"
    server.run("train", *trainings.words(run_dir), fault={"kind": "kill", "at": trainings.writes // 2})
    remount(disk, "ro")
    ended = server.run("train", *trainings.words(run_dir))
    assert fault_of(ended) is None, fault_of(ended)
    remount(disk, "rw")
    trainings.go_on(run_dir)
    assert_same_run(trainings.whole, run_dir)
