"""Where the program finds its own files."""

from pathlib import Path

import pytest

from hornn.places import CONF, sweep_files


def test_a_folder_called_sweeps_counts_where_it_holds_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sweep_files() == CONF / "sweeps"
    Path("sweeps").mkdir()
    Path("sweeps/notes.txt").touch()
    assert sweep_files() == CONF / "sweeps", "somebody's own folder"
    Path("sweeps/mine.yaml").touch()
    assert sweep_files() == Path("sweeps")
