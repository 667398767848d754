"""A training that is killed anywhere, once or again and again: the same command ends it as if nothing had been."""

import signal
import time
from pathlib import Path

import pytest

from faults.commands import ForkServer
from faults.draws import cases, draw, spread
from faults.same import assert_same_run
from faults.trainings import Trainings


@pytest.fixture(scope="module")
def trainings(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    return Trainings(server, tmp_path_factory.mktemp("trainings"))


@pytest.mark.each(2)
@pytest.mark.parametrize("number", cases(4, 5.0))
def test_killed_at_a_write(server: ForkServer, trainings: Trainings, tmp_path: Path, number: int) -> None:
    place = spread("training", number, trainings.writes)
    words = trainings.words(tmp_path / "run")
    ended = server.run("train", *words, fault={"kind": "kill", "at": place})
    assert ended.code == -signal.SIGKILL, ended
    trainings.go_on(tmp_path / "run")
    assert_same_run(trainings.whole, tmp_path / "run")


@pytest.mark.thorough
@pytest.mark.parametrize("number", cases(1, 1.0))
def test_killed_again_and_again(
    server: ForkServer, trainings: Trainings, tmp_path: Path, number: int
) -> None:
    """Each start gets a little farther."""
    dice, run_dir = draw("again", number), tmp_path / "run"
    for _ in range(dice.randint(2, 5)):
        if not (run_dir / "result.json").exists():
            place = dice.randint(1, trainings.writes // 2)
            server.run("train", *trainings.words(run_dir), fault={"kind": "kill", "at": place})
    trainings.go_on(run_dir)
    assert_same_run(trainings.whole, run_dir)


@pytest.mark.each(2)
@pytest.mark.parametrize("number", cases(1, 2.0))
@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ended_by_a_signal_at_a_random_time(
    server: ForkServer, trainings: Trainings, tmp_path: Path, what: signal.Signals, number: int
) -> None:
    dice, run_dir = draw(what.name, number), tmp_path / "run"
    training = server.start("train", *trainings.words(run_dir))
    time.sleep(dice.uniform(0.05, 0.8))
    training.kill(what)
    ended = training.end(30)
    assert not ended.late
    allowed = {
        signal.SIGTERM: (143, -15),
        signal.SIGINT: (130, -2),
        signal.SIGHUP: (-1,),
        signal.SIGKILL: (-9,),
    }
    assert ended.code in (0, *allowed[what]), ended
    if ended.code > 0:
        assert ended.err in (
            "error: terminated; the same command continues\n",
            "error: interrupted; the same command continues\n",
        )
    trainings.go_on(run_dir)
    assert_same_run(trainings.whole, run_dir)
