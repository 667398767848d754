"""What --help shows."""

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


def test_help_of_train_shows_groups_choices_and_keys(command: Command) -> None:
    code, out, err = command("train", "--help")
    assert (code, err) == (0, "")
    for line in (
        "trainer: cpu, ddp, debug, gpu",
        "logger: csv, wandb, wandb_offline",
        "data: files, ptb, pydoc, text8",
        "hornn_fofe",
        "hornn_gated",
        "model.order=3",
        "data.root=FOLDER",
        "trainer.max_epochs=20",
        "overwrite=true",
        "HYDRA_FULL_ERROR=1",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("entry", "keys"),
    [
        ("evaluate", ["checkpoint", "split: test", "text", "batch_size: 1", "result"]),
        ("score", ["checkpoint", "text: '-'", "per_token: false", "batch_size: 64"]),
        ("rescore", ["nbest", "references", "dev_references", "lm_weight", "word_penalty"]),
        ("generate", ["checkpoint", "prompt", "length: 50", "temperature: 0.8", "seed: 1"]),
    ],
)
def test_help_of_the_others_shows_their_keys(command: Command, entry: str, keys: list[str]) -> None:
    code, out, err = command(entry, "--help")
    assert (code, err) == (0, "")
    assert f"python src/{entry}.py checkpoint=PATH" in out
    for key in keys:
        assert key in out
