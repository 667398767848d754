"""The search for constants of a cell of somebody's own, whose source changes."""

import json
from pathlib import Path

import pytest

from commands.outcomes import refusal
from hornn.run.code import code_of
from outcome import Command
from run.test_code import Own
from sweep.searches import FAKE
from sweep.test_search import runs


@pytest.mark.thorough
def test_an_edited_cell_of_ones_own_is_searched_anew(
    command: Command, quick_jobs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="needs the tune extra")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "own")
    own = Own(tmp_path / "own")
    own.write(0.5)
    words = [f"--config-dir={own.conf}", *FAKE, "model=halving", "trials=1"]
    assert command("tune", *words).code == 0
    ((folder, result),) = runs().items()
    result["code"] = code_of({"_target_": "halving.Halving"})
    (folder / "result.json").write_text(json.dumps(result))
    own.write(0.25)
    line = refusal(command("tune", *words))
    assert f"{folder} holds a run of other code (the source of halving.Halving was " in line
    assert "give another seed=, which draws other constants" in line
    assert command("tune", *words, "seed=9").code == 0
    own.write(0.5)
    assert "1 of 1 trials" in command("tune", *words).out
    assert len(runs()) == 2
