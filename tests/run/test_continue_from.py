"""A finished run that is trained further is the run with more epochs."""

import json
import shutil
from pathlib import Path

import pytest

from commands.outcomes import contents, refusal, result_of, rewrite
from hornn.checkpoint import CARD, read_checkpoint
from outcome import Command
from run.test_resume import assert_same
from small_text import SMALL, write_text

SCHEDULES = {
    "restores the best weights": ["schedule.threshold=10", "schedule.restore_best=true"],
    "adamw, constant": ["schedule=constant", "optimizer=adamw", "network.dropout=0.2", "model=lstm"],
    "asgd, from its second epoch on": ["schedule=constant", "optimizer=asgd", "optimizer.start=16"],
    "halves by the epoch": ["schedule=constant_then_halve", "schedule.constant_epochs=1"],
    "overlapping windows, noise, dropped weights": [
        "bptt_window=10",
        "weight_noise=0.01",
        "recurrent_dropout=0.2",
    ],
}


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(recipe, marks=[pytest.mark.thorough] if "epoch" in recipe or "adamw" in recipe else [])
        for recipe in SCHEDULES
    ],
)
def test_it_is_the_run_that_had_more_epochs_from_the_beginning(
    command: Command, small: list[str], tmp_path: Path, recipe: str
) -> None:
    words = [*small, *SCHEDULES[recipe]]
    short, whole, longer = (tmp_path / name for name in ("short", "whole", "longer"))
    for folder, more in (
        (short, []),
        (whole, ["trainer.max_epochs=4"]),
        (longer, ["trainer.max_epochs=4", f"continue_from={short}"]),
    ):
        done = command("train", *words, f"run_dir={folder}", *more)
        assert (done.code, done.err) == (0, "")
    assert_same(whole, longer)
    assert result_of(longer)["name"] == result_of(whole)["name"] != result_of(short)["name"]
    assert result_of(short)["epochs"] == 2
    assert read_checkpoint(longer / "best.ckpt")[CARD]["name"] == result_of(longer)["name"]


def test_snapshots_and_the_start_of_a_run_come_along(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    first, short, longer = (tmp_path / name for name in ("first", "short", "longer"))
    assert command("train", *small, f"run_dir={first}").code == 0
    kept = ["callbacks=snapshots", "callbacks.snapshots.epochs=[1,3]"]
    words = [*small, *kept, "seed=2", f"init_from={first / 'best.ckpt'}"]
    done = command("train", *words, f"run_dir={short}")
    assert "callbacks.snapshots kept no weights of epochs [3]: training did not come there\n" in done.out
    (first / "best.ckpt").unlink()
    done = command("train", *words, f"run_dir={longer}", "trainer.max_epochs=3", f"continue_from={short}")
    assert (done.code, done.err) == (0, "")
    assert "kept no weights" not in done.out
    assert sorted(path.name for path in longer.glob("epoch-*")) == ["epoch-1.ckpt", "epoch-3.ckpt"]
    assert "taken from init_from, at 0.1 times the learning rate: " in done.out


def test_the_best_epoch_may_be_one_of_the_finished_run(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    """And a run that is cut off goes on from its own folder, whatever became of the other one."""
    words = [*small, "schedule=constant", "optimizer.lr=5"]
    short, longer = tmp_path / "short", tmp_path / "longer"
    assert command("train", *words, f"run_dir={short}").code == 0
    result = json.loads((short / "result.json").read_text())
    done = command("train", *words, f"run_dir={longer}", "trainer.max_epochs=3", f"continue_from={short}")
    assert (done.code, done.err) == (0, "")
    assert f"continues in {longer}" in done.out
    after = result_of(longer)
    assert [record["valid_ppl"] for record in after["metrics"][:2]] == [
        record["valid_ppl"] for record in result["metrics"]
    ]
    assert after["wall_seconds"] > result["wall_seconds"]
    assert len(after["starts"]) == 2


@pytest.fixture(scope="module")
def finished(command: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with a finished run, `short`, and one that ended within its first epoch, `cut`; their words.

    `mixed` is the first one with the best weights of the second, `elsewhere` the first one of another text.
    """
    folder = tmp_path_factory.mktemp("finished")
    words = [*write_text(folder), *SMALL]
    for name, more in {"short": [], "cut": ["trainer.max_steps=3"]}.items():
        assert command("train", *words, f"run_dir={folder / name}", *more).code == 0
    shutil.copytree(folder / "short", folder / "mixed")
    shutil.copy(folder / "cut" / "best.ckpt", folder / "mixed")
    shutil.copytree(folder / "short", folder / "elsewhere")
    for name in ("best.ckpt", "last.ckpt"):
        rewrite(
            folder / "elsewhere" / name,
            lambda held: held[CARD]["data"].update(text_checksum="sha256:another"),
        )
    return folder, words


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("words", "message"),
    {
        "trainer.max_epochs=2": "has 2 epochs already, trainer.max_epochs is 2: give more",
        "trainer.max_epochs=null trainer.max_steps=20": "28 updates already, trainer.max_steps is 20: give more",
        "trainer.max_epochs=4 trainer.max_steps=28": "has 28 updates already, trainer.max_steps is 28",
        "trainer.max_epochs=4 seed=2": "is another run: seed is 1 there and 2 here: give the words of that run",
        "trainer.max_epochs=4 optimizer.lr=0.3": "optimizer.lr is 0.1 there and 0.3 here",
        "trainer.max_epochs=4 model=rnn": "is another run: model",
        "trainer.max_epochs=4 continue_from=FOLDER/cut": "was ended by trainer.max_steps, its schedule or a callback",
        "trainer.max_epochs=4 continue_from=FOLDER/elsewhere": "is a run on another text (sha256:another of train",
        "trainer.max_epochs=4 continue_from=FOLDER/mixed": "mixed/best.ckpt is of another run, and last.ckpt says",
        "trainer.max_epochs=4 overwrite=true": "in a folder that holds no run yet: leave out overwrite=true",
        "trainer.max_epochs=4 continue_from=FOLDER/short/best.ckpt": (
            "short/best.ckpt is no folder: give the folder of a finished run"
        ),
        "model=kn": "this model is counted: leave the word out",
    }.items(),
)
def test_what_cannot_be_continued_is_refused(
    command: Command, finished: tuple[Path, list[str]], tmp_path: Path, words: str, message: str
) -> None:
    folder, common = finished
    short, new = folder / "short", tmp_path / "new"
    before = contents(short)
    common = [word for word in common if words != "model=kn" or not word.startswith("model.")]
    given = words.replace("FOLDER", str(folder)).split()
    done = command("train", *common, f"run_dir={new}", f"continue_from={short}", *given)
    assert message in refusal(done)
    assert contents(short) == before
    assert not new.exists()
