"""How far a run is that has no result yet."""

import fcntl
from typing import Any

import pytest

from hornn.reporting.running import RunSoFar, read_run_so_far
from reporting.place import Place, line_of, table_of

EPOCHS = "epoch,seconds,valid_ppl\n1,60.0,200.0\n2,60.0,150.0\n"


@pytest.mark.parametrize(
    ("so_far", "words"),
    [
        (RunSoFar(limit=20), ""),
        (RunSoFar(({"epoch": 2.0},)), "epoch 2"),
        (RunSoFar(({"epoch": 2.0},), limit=-1), "epoch 2"),
        (RunSoFar(({"epoch": 2.0, "seconds": 60.0},), limit=20), "epoch 2 of 20"),
        (RunSoFar(({"epoch": 2.0, "seconds": 60.0},), 30.0, True, 20), "epoch 2 of 20, at most 18 min left"),
        (RunSoFar(({"epoch": 2.0, "seconds": 600.0},), 0.0, True, 20), "epoch 2 of 20, at most 3.0 h left"),
        (RunSoFar(({"epoch": 19.0, "seconds": 60.0},), 90.0, True, 20), "epoch 19 of 20, at most 0 s left"),
    ],
)
def test_how_far_in_words(so_far: RunSoFar, words: str) -> None:
    assert so_far.in_words() == words


@pytest.fixture
def at_work(place: Place) -> Any:
    """A run whose record says that it is running, after two epochs."""
    place.record({"row": "sum-2", "seed": 1, "status": "running", "name": "aaaa"})
    folder = place.folder / "outputs/runs/sum-2/aaaa/seed=1"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text(EPOCHS)
    (folder / "config.yaml").write_text("config: {trainer: {max_epochs: 20}}")
    return place, folder


def test_a_run_at_work_says_its_epoch_and_its_time_left(at_work: Any) -> None:
    place, folder = at_work
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (run,) = line_of(table_of(place), "sum-2").runs
        assert (run.state, run.progress) == ("running", "epoch 2 of 20, at most 18 min left")
        assert [record["valid_ppl"] for record in run.records] == [200.0, 150.0]


@pytest.mark.parametrize("recorded", ["queued", "running", "failed", "done"])
def test_a_run_that_its_launcher_starts_is_running(at_work: Any, recorded: str) -> None:
    place, folder = at_work
    place.record({"row": "sum-2", "seed": 1, "status": recorded, "name": "aaaa", "error": "a full disk"})
    with (folder / ".claim").open("a") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX)
        (run,) = line_of(table_of(place), "sum-2").runs
        assert (run.state, run.problem) == ("running", "")


def test_a_run_that_was_killed_in_its_first_epoch(at_work: Any) -> None:
    place, folder = at_work
    (folder / "metrics.csv").unlink()
    assert line_of(table_of(place), "sum-2").runs[0].state == "queued"
    (folder / "last.ckpt").touch()
    assert line_of(table_of(place), "sum-2").runs[0].state == "unfinished"


def test_a_damaged_config_does_not_say_how_long_a_run_is(at_work: Any) -> None:
    place, folder = at_work
    (folder / "config.yaml").write_text("config: [")
    (run,) = line_of(table_of(place), "sum-2").runs
    assert run.progress == "epoch 2"


def test_a_run_that_was_killed_is_unfinished(at_work: Any) -> None:
    place, folder = at_work
    (folder / ".lock").touch()
    (run,) = line_of(table_of(place), "sum-2").runs
    assert (run.state, run.progress) == ("unfinished", "epoch 2 of 20")


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"epoch\nnone\n", b"", b"epoch,seconds\n1\n", b"epoch\nnan\n"]
)
def test_a_damaged_file_says_nothing(tmp_path: Any, content: bytes) -> None:
    (tmp_path / "metrics.csv").write_bytes(content)
    assert read_run_so_far(tmp_path).in_words() in ("", "epoch 1")
