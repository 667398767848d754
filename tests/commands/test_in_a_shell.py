"""Commands in processes of their own, as a shell starts them."""

import subprocess
import sys
from pathlib import Path

import pytest

from commands.outcomes import refusal
from hornn.places import CONF
from outcome import Command


@pytest.mark.slow
def test_the_first_command_in_a_shell(process: Command, small: list[str], tmp_path: Path) -> None:
    bar = "trainer.enable_progress_bar=true"
    code, out, err = process("train", *small, bar, f"run_dir={tmp_path / 'run'}")
    assert (code, err) == (0, "")
    for part in (
        "hornn_fofe on files: 252 weights",
        "  train, valid: perplexity; *: the best so far; /s: tokens\nepoch   1 ",
        "epoch   2 ",
        "unigram",
        str(tmp_path / "run" / "result.json"),
    ):
        assert part in out


@pytest.mark.slow
def test_a_full_error_on_demand(process: Command, small: list[str], tmp_path: Path) -> None:
    words = [*small, "model.order=0", f"run_dir={tmp_path / 'run'}"]
    code, _, err = process("train", *words)
    assert (code, err) == (2, "error: order must be a whole number >= 1, got 0\n")
    code, _, err = process("train", *words, HYDRA_FULL_ERROR="1")
    assert code != 0
    assert "Traceback (most recent call last):" in err


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["train", "evaluate", "generate"])
def test_a_shell_sees_one_line(process: Command, small: list[str], tmp_path: Path, entry: str) -> None:
    bad = tmp_path / "bad.ckpt"
    bad.write_text("nothing")
    if entry == "train":
        outcome = process(entry, *small, "model.alpha=1", f"run_dir={tmp_path / 'run'}")
    else:
        outcome = process(entry, f"checkpoint={bad}")
    assert "alpha" in refusal(outcome) or "bad.ckpt is corrupt" in outcome.err
    assert outcome.out in ("", "hornn_fofe on files: loading\n")


def test_a_folder_that_is_there_no_more(tmp_path: Path) -> None:
    score = f'"{sys.executable}" "{CONF.parent}/src/score.py" --help'
    gone = f'cd "{tmp_path}" && mkdir gone && cd gone && rmdir ../gone && {score}'
    done = subprocess.run(["bash", "-c", gone], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "error: the current folder is there no more: go to another one\n",
    )
