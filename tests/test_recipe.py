"""Config files put together without Hydra. tests/reporting/test_sweep_files.py holds every row against Hydra."""

from pathlib import Path

import pytest

from hornn.recipe import read_choice, resolve

ROOT = Path(__file__).parents[1]


def test_a_number_without_a_point_is_a_number() -> None:
    choices, config = resolve(["optimizer.lr=1e-5", "model=rnn"], {}, ROOT / "conf")
    assert (choices["model"], config["optimizer"]["lr"]) == ("rnn", 1e-5)


@pytest.mark.parametrize("choice", ["none", "../../etc/passwd", "rnn.yaml", "", "/etc/passwd"])
def test_a_choice_that_is_not_there(choice: str) -> None:
    with pytest.raises(ValueError, match=r"unknown model .*; it is one of: clockwork, "):
        read_choice("model", choice)


def test_a_choice_of_a_folder_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("_target_: my.Cell\nhidden_size: 3\n")
    (tmp_path / "model" / "wide.yaml").write_text("defaults: [mine]\nhidden_size: 30\n")
    folders = (ROOT / "conf", tmp_path)
    assert read_choice("model", "wide", folders) == {"_target_": "my.Cell", "hidden_size": 30}
