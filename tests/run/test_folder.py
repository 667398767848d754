"""Whose the files of a folder are: a run replaces its own, and others only when it is told to."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import hornn.run.continue_from
from commands.outcomes import contents, refusal, result_of
from hornn.checkpoint import write_checkpoint
from hornn.run.folder import is_put_on_record, put_on_record, require_own
from hornn.run.identity import Identity
from outcome import Command

NETWORK = ["model=rnn", "model.hidden_size=6", "trainer.max_steps=20"]
COUNTS = ["model=kn", "model.order=2"]
FILES = {
    "best.ckpt": "weights",
    "config.yaml": "mine: 1\n",
    "metrics.csv": "a,b\n",
    "epoch-7.ckpt": "weights",
}


@pytest.fixture
def quiet(text: list[str]) -> list[str]:
    return [*text, "logger=csv", "trainer.enable_progress_bar=false"]


def identity(folder: Path, name: str = "0123456789") -> Identity:
    return Identity({"model": "lstm"}, {"seed": 1}, {}, name, 1, folder, False)


@pytest.mark.parametrize("name", ["0123456789", "123456e789", "1234567890", "abcdefabcd"])
def test_a_name_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    """Also one that YAML may take for a number."""
    put_on_record(identity(tmp_path, name))
    assert is_put_on_record(identity(tmp_path, name))
    assert not is_put_on_record(identity(tmp_path, "x"))
    assert not is_put_on_record(identity(tmp_path, name)._replace(seed=2))


@pytest.mark.parametrize("config", ["", "[", "mine: 1", "- 1", "\x00", "name: '0123456789'"])
def test_another_config_is_no_run_s(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.yaml").write_text(config)
    with pytest.raises(
        ValueError, match=r"holds config.yaml that are not of this run \(0123456789, seed 1\)"
    ):
        require_own(identity(tmp_path))


@pytest.mark.each(3)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("words", [NETWORK, COUNTS])
def test_files_of_no_run_stay(
    command: Command, quiet: list[str], tmp_path: Path, name: str, words: list[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / name).write_text(FILES[name])
    before = contents(run)
    line = refusal(command("train", *quiet, *words, f"run_dir={run}"))
    assert f"{run} holds {name} that are not of this run (" in line
    assert "give another run_dir, or overwrite=true to replace them" in line
    assert {path: content for path, content in contents(run).items() if ".lock" not in path} == before
    assert command("train", *quiet, *words, f"run_dir={run}", "overwrite=true").code == 0
    assert not (run / "epoch-7.ckpt").exists()


def test_a_run_does_not_replace_what_it_starts_from(
    command: Command, quiet: list[str], tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, words in (
        (one, ["model=rnn", "model.hidden_size=6"]),
        (other, ["model=kn", "model.order=2"]),
    ):
        assert command("train", *quiet, *words, f"run_dir={folder}").code == 0
    (tmp_path / "link").symlink_to(other)
    before = contents(other)
    mixture = f"init_from=[{one}/best.ckpt,{other}/best.ckpt]"
    for words in (
        [*NETWORK, f"init_from={other}/best.ckpt"],
        ["model=mixture", mixture],
        ["model=mixture", mixture.replace("other", "link")],
    ):
        line = refusal(command("train", *quiet, *words, f"run_dir={other}", "overwrite=true"))
        assert "best.ckpt lies in the folder that this run writes to: give another run_dir" in line
    (other / "result.json").unlink()
    assert "that are not of this run" in refusal(
        command(
            "train",
            *quiet,
            "model=mixture",
            "model.lengths=[5]",
            f"init_from=[{one}/best.ckpt]",
            f"run_dir={other}",
        )
    )
    (other / "result.json").write_bytes(before[str(other / "result.json")])
    assert contents(other) == before


@pytest.mark.each(3)
@pytest.mark.parametrize("left", [["config.yaml"], ["config.yaml", "best.ckpt"], list(FILES)])
@pytest.mark.parametrize("words", [NETWORK, COUNTS])
def test_a_run_that_was_cut_off_before_its_first_checkpoint_begins_anew(
    command: Command, quiet: list[str], tmp_path: Path, left: list[str], words: list[str]
) -> None:
    run = tmp_path / "run"
    assert command("train", *quiet, *words, f"run_dir={run}").code == 0
    expected = result_of(run)["test_ppl"]
    for path in run.glob("*.*"):
        if path.name not in (*left, ".lock"):
            path.unlink()
    assert command("train", *quiet, *words, f"run_dir={run}").code == 0
    assert result_of(run)["test_ppl"] == expected
    assert yaml.safe_load((run / "config.yaml").read_text())["name"] == result_of(run)["name"]


@pytest.mark.thorough
def test_a_run_that_was_cut_off_as_it_was_carried_over_goes_on(
    command: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its best.ckpt and before its last.ckpt."""
    short, longer = tmp_path / "short", tmp_path / "longer"
    assert command("train", *small, f"run_dir={short}").code == 0
    words = [*small, f"run_dir={longer}", "trainer.max_epochs=3", f"continue_from={short}"]

    def cut(checkpoint: Any, path: Path, card: Any) -> None:
        if path.name == "last.ckpt":
            raise KeyboardInterrupt
        write_checkpoint(checkpoint, path, card)

    longer.mkdir()
    (longer / "best.ckpt").write_text("weights")
    assert "holds best.ckpt that are not of this run" in refusal(command("train", *words))
    assert (longer / "best.ckpt").read_text() == "weights"
    (longer / "best.ckpt").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(hornn.run.continue_from, "write_checkpoint", cut)
        assert command("train", *words).code == 130
    assert (longer / "best.ckpt").exists()
    assert not (longer / "last.ckpt").exists()
    done = command("train", *words)
    assert (done.code, done.err) == (0, "")
    assert f"continues in {longer}" in done.out


SIGNALLED = """
import sys, torch.serialization
import subprocess
import sys
from pathlib import Path
from hornn.checkpoint import write_checkpoint

kind = torch.serialization._open_zipfile_writer_buffer
made = kind.__init__

def signalled(self, *given):
    made(self, *given)
    raise KeyboardInterrupt

kind.__init__ = signalled
try:
    write_checkpoint({"weights": torch.zeros(9)}, Path(sys.argv[1]), {})
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.slow
def test_a_signal_as_a_checkpoint_is_begun_ends_the_run_alone(tmp_path: Path) -> None:
    """The writer is torch's and outlives its file: a write into a closed one would abort the process."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, tmp_path / "last.ckpt"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def cut_off(command: Command, quiet: list[str], tmp_path: Path) -> tuple[list[str], Path]:
    """A run that lacks nothing but its result."""
    words = [*quiet, "model=rnn", "model.hidden_size=6", "trainer.max_epochs=2"]
    assert command("train", *words, f"run_dir={tmp_path / 'run'}").code == 0
    (tmp_path / "run" / "result.json").unlink()
    return [*words, f"run_dir={tmp_path / 'run'}"], tmp_path / "run"


def test_the_best_weights_of_another_run_are_not_scored(
    command: Command, cut_off: tuple[list[str], Path]
) -> None:
    words, run = cut_off
    assert command("train", *words[:-1], "seed=7", f"run_dir={run.parent / 'other'}").code == 0
    best = (run / "best.ckpt").read_bytes()
    for held, said in (
        (
            (run.parent / "other" / "best.ckpt").read_bytes(),
            "best.ckpt is of another run, and last.ckpt says that",
        ),
        (None, "best.ckpt is missing, and last.ckpt says that epoch"),
    ):
        (run / "best.ckpt").unlink()
        if held is not None:
            (run / "best.ckpt").write_bytes(held)
        before = contents(run)
        assert said in refusal(command("train", *words))
        assert contents(run) == before
    (run / "best.ckpt").write_bytes(best)
    assert command("train", *words).code == 0


@pytest.mark.each(3)
@pytest.mark.parametrize("part", ["optimizer", "weights", "records"])
def test_a_checkpoint_without_a_part_is_not_gone_on_with(
    command: Command, cut_off: tuple[list[str], Path], part: str
) -> None:
    words, run = cut_off
    checkpoint = torch.load(run / "last.ckpt", weights_only=True)
    if part == "optimizer":
        checkpoint["optimizer_states"] = []
    elif part == "weights":
        checkpoint["state_dict"] = {name: weight.half() for name, weight in checkpoint["state_dict"].items()}
    else:
        checkpoint["training"]["records"] = []
    torch.save(checkpoint, run / "last.ckpt")
    line = refusal(command("train", *words))
    assert (
        "as float16, a run keeps it in float32" if part == "weights" else "the run cannot go on from"
    ) in line
