"""`evaluate.py record=true` that is killed anywhere leaves a whole result.json, and the same command completes it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands.outcomes import result_of
from faults.commands import ForkServer
from faults.draws import cases, spread
from faults.trainings import Trainings

WORDS = ["dynamic_lr=[0.1,0.5]", "seq_len=5", "record=true"]


class Recorded:
    """A finished run, and what the unbroken command adds to it."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.run_dir = Trainings(server, folder).whole
        self.before = result_of(self.run_dir)
        self.folder = folder / "after"
        shutil.copytree(self.run_dir, self.folder)
        ended, self.writes = server.count_writes("evaluate", *self.words(self.folder))
        assert ended.code == 0, ended.err
        self.after = result_of(self.folder)

    @staticmethod
    def words(folder: Path) -> list[str]:
        return [f"checkpoint={folder / 'best.ckpt'}", f"data.cache_dir={folder}-cache", *WORDS]


@pytest.fixture(scope="module")
def recorded(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(server, tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("number", cases(2, 1.5))
def test_killed_at_a_write(server: ForkServer, recorded: Recorded, tmp_path: Path, number: int) -> None:
    folder, place = tmp_path / "run", spread("scoring", number, recorded.writes)
    shutil.copytree(recorded.run_dir, folder)
    server.run("evaluate", *recorded.words(folder), fault={"kind": "kill", "at": place})
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert found in (recorded.before, recorded.after)
    assert server.run("evaluate", *recorded.words(folder)).code == 0
    assert result_of(folder) == recorded.after
