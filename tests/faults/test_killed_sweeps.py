"""A launcher or a search that is killed anywhere loses no run and does none twice."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from faults.commands import ForkServer
from faults.draws import cases, draw, spread
from faults.sweeps import ENTRIES, go_on, make_place, outcome, starts

Whole = dict[str, tuple[dict[str, Any], int, float]]
pytestmark = pytest.mark.faults  # tests/sweep kills launchers, too, a few times


@pytest.fixture(scope="module")
def whole(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Of an unbroken sweep and search: what came out, the number of writes, the seconds."""
    found = {}
    for entry, words in ENTRIES.items():
        folder, began = make_place(tmp_path_factory.mktemp(entry)), time.monotonic()
        ended, writes = server.count_writes(entry, *words, folder=folder)
        assert ended.code == 0, ended.err
        found[entry] = (outcome(folder), writes, time.monotonic() - began)
    return found


def assert_nothing_lost_or_doubled(server: ForkServer, entry: str, folder: Path, whole: Whole) -> None:
    go_on(server, entry, folder)
    assert outcome(folder) == whole[entry][0]
    before = starts(folder)
    go_on(server, entry, folder)
    assert starts(folder) == before, "a run that was done is started again"


@pytest.mark.parametrize("number", cases(0, 1.5))
@pytest.mark.parametrize("entry", ["train", "tune"])
def test_killed_at_a_write(server: ForkServer, whole: Whole, tmp_path: Path, entry: str, number: int) -> None:
    folder, place = make_place(tmp_path), spread(f"write of {entry}", number, whole[entry][1])
    server.run(entry, *ENTRIES[entry], folder=folder, fault={"kind": "kill", "at": place})
    assert_nothing_lost_or_doubled(server, entry, folder, whole)


@pytest.mark.parametrize("number", cases(0, 0.5))
@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("entry", ["train", "tune"])
def test_ended_by_a_signal_at_a_random_time(
    server: ForkServer, whole: Whole, tmp_path: Path, entry: str, what: signal.Signals, number: int
) -> None:
    folder, seconds = make_place(tmp_path), whole[entry][2]
    launcher = server.start(entry, *ENTRIES[entry], folder=folder)
    time.sleep(draw(f"{entry} {what.name}", number).uniform(0.1, seconds))
    launcher.kill(what)
    ended = launcher.end()
    assert not ended.late
    assert "Traceback" not in ended.err
    assert_nothing_lost_or_doubled(server, entry, folder, whole)
