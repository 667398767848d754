"""Damaged files, full disks, and folders that hold another run."""

import errno
import json
import os
import re
from pathlib import Path

import pytest

import hornn.sweep.record
from sweep.mini import Launch, recorded, starts, statuses

pytestmark = pytest.mark.slow
ONE_EPOCH = "trainer.max_epochs=1"


def test_a_damaged_record_is_refused_and_kept(launch: Launch) -> None:
    table = ("sweeps=mini", "hydra.sweeper.only=[elman]", ONE_EPOCH)
    assert launch(*table).code == 0
    path = Path("outputs/sweeps/mini.json")
    path.write_text(half := path.read_text()[:200])
    code, _, err = launch(*table)
    assert code == 2
    assert err.startswith("error: outputs/sweeps/mini.json is damaged (")
    assert "remove it; the runs are kept in their folders" in err
    assert err.count("\n") == 1
    assert path.read_text() == half
    path.unlink()
    assert launch(*table).code == 0
    assert statuses() == ["done"]
    assert all(len(lines) == 1 for lines in starts().values())


def test_a_damaged_result_is_that_jobs_failure(launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    result = Path(recorded()["elman", 1].run_dir, "result.json")
    result.write_text(result.read_text()[:40])
    code, out, err = launch("sweeps=mini", ONE_EPOCH)
    assert code == 2
    assert f"elman seed=1: failed: {result} is damaged (" in out
    assert (
        "Once the cause is mended, the same command, with hydra.sweeper.retry_failed=true, tries them again"
        in err
    )
    assert statuses() == ["failed", "done"]
    # The last line said so.
    assert launch("sweeps=mini", ONE_EPOCH, "hydra.sweeper.retry_failed=true").code == 0
    assert statuses() == ["done", "done"]
    assert json.loads(result.read_text())["test_ppl"] == 81
    assert [len(lines) for lines in starts().values()] == [1, 2]


@pytest.mark.thorough
def test_a_damaged_config_is_named(launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    path = Path(recorded()["elman", 1].run_dir, "config.yaml")
    for content in (b"[", b"\xff", b"7"):
        path.write_bytes(content)
        code, _, err = launch("sweeps=mini", ONE_EPOCH)
        assert code == 2
        assert err.startswith(f"error: {path} ")
        assert err.count("\n") == 1


@pytest.mark.thorough
def test_a_full_disk_under_the_record(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    before = recorded()
    original, written = hornn.sweep.record.write_atomically, []

    def fill(path: Path, text: str) -> None:
        written.append(path)
        if len(written) == 3:  # the job is at work by then
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(path, text)

    monkeypatch.setattr(hornn.sweep.record, "write_atomically", fill)
    code, _, err = launch("sweeps=mini", "sweep.seeds=[7,8]", ONE_EPOCH)
    assert code == 2
    assert err.startswith(
        "error: outputs/sweeps/mini.json: No space left on device; free some space on that disk"
    )
    assert recorded().items() >= before.items()
    monkeypatch.undo()


@pytest.mark.thorough
def test_a_full_disk_under_the_log(launch: Launch) -> None:
    code, out, _ = launch("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH, FAKE_FULL="2")
    assert code == 2
    log = Path(recorded()["elman", 2].run_dir, "train.log")
    assert f"elman seed=2: failed: exit code 2 and nothing in {log}: is the disk full?" in out
    assert statuses() == ["done", "failed"] * 2


def test_a_folder_that_is_removed_ends_its_job_alone(launch: Launch) -> None:
    code, out, _ = launch("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH, FAKE_GONE="2")
    assert code == 2
    assert "elman seed=2: failed" in out
    assert statuses() == ["done", "failed"] * 2


@pytest.mark.parametrize("name", [".lock", ".claim", "train.log", "result.json", ""])
def test_a_folder_that_cannot_be_used_ends_its_job_alone(launch: Launch, name: str) -> None:
    assert launch("sweeps=mini", "sweep.seeds=[1]", ONE_EPOCH).code == 0
    folder = Path(recorded()["elman", 1].run_dir)
    for path in folder.iterdir():
        path.unlink()
    if name:
        (folder / name).mkdir()
    else:
        folder.rmdir()
        folder.write_text("a file in the way")
    code, out, err = launch("sweeps=mini", "sweep.seeds=[1,2]", ONE_EPOCH)
    assert code == 2
    assert re.search(
        rf"elman seed=1: failed: \S*{folder.name}\S*: (Is a directory|Not a directory|File exists)", out
    )
    assert err.startswith("error: 1 of 4 jobs failed: elman seed=1. ")
    assert statuses() == ["failed", "done", "done", "done"]


def test_another_run_with_the_same_hash(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hornn.run.identity.name_of", lambda choices, config: "0123456789")
    code, _, err = launch("model=rnn", "model.hidden_size=4,5", ONE_EPOCH)
    assert code == 2
    assert (
        "model.hidden_size=4 and model.hidden_size=5 would both write to outputs/rnn/pydoc/0123456789/seed=1,"
        " but their configs differ in model.hidden_size: give them folders by run_dir=FOLDER" in err
    )
    assert not starts()


@pytest.mark.thorough
def test_another_run_in_the_folder(launch: Launch) -> None:
    assert launch("sweeps=mini", ONE_EPOCH).code == 0
    config = Path(recorded()["elman", 1].run_dir, "config.yaml")
    config.write_text(config.read_text().replace("  lr: ", "  lr: 1"))
    code, _, err = launch("sweeps=mini", ONE_EPOCH)
    assert code == 2
    assert "holds another run than elman, but their configs differ in optimizer.lr" in err
