"""Callbacks of Lightning's own: which work here, and which are refused before they could fail."""

from pathlib import Path

import pytest

from commands.outcomes import refusal
from outcome import Command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [
                "+callbacks.sums._target_=lightning.pytorch.callbacks.GradientAccumulationScheduler",
                "+callbacks.sums.scheduling={0:2}",
            ],
            "GradientAccumulationScheduler, which does not work here: give a larger data.batch_size",
        ),
        (
            [
                "+callbacks.ends._target_=lightning.pytorch.callbacks.Timer",
                "+callbacks.ends.duration={hours:1}",
            ],
            "callbacks.ends is Lightning's Timer, which does not work here: give trainer.max_time",
        ),
        (
            ["+callbacks.finds._target_=lightning.pytorch.callbacks.LearningRateFinder"],
            "callbacks.finds is Lightning's LearningRateFinder",
        ),
        (
            ["+callbacks.bar._target_=lightning.pytorch.callbacks.RichProgressBar"],
            "callbacks.bar is Lightning's ProgressBar, which does not work here: leave it out",
        ),
        (
            ["+callbacks.tuned._target_=lightning.pytorch.callbacks.BackboneFinetuning"],
            "callbacks.tuned is Lightning's BaseFinetuning, which does not work here: leave it out",
        ),
    ],
)
def test_what_would_fail_in_the_training_is_refused(train: Command, words: list[str], said: str) -> None:
    assert said in refusal(train("run", *words))


def test_lightnings_own_checkpoints_lie_in_a_folder_of_their_own(train: Command, tmp_path: Path) -> None:
    done = train("run", "+callbacks.more._target_=lightning.pytorch.callbacks.ModelCheckpoint")
    assert done.code == 0, done.err
    assert len(list(tmp_path.glob("run/*/*/checkpoints/epoch=*.ckpt"))) == 1
