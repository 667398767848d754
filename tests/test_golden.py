"""The first losses of a seeded run on a toy corpus: a refactor must not move them."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Model -> (training, validation) loss of each of three epochs, nats per token.
GOLDEN: dict[str, list[tuple[float, float]]] = {}


SETTINGS = (  # all of them, so that a new default moves nothing
    *("model.hidden_size=8", "network.init_std=0.1", "network.precision=fp32", "loss_reduction=mean"),
    *("optimizer=sgd", "optimizer.lr=0.5", "optimizer.momentum=0.9", "optimizer.weight_decay=1e-4"),
    *("optimizer.max_norm=2", "optimizer.clip=0.1", "optimizer.clip_mode=element", "schedule=constant"),
    *("seed=1", "trainer.max_epochs=3", "trainer.enable_progress_bar=false", "logger=csv"),
)


def losses(
    command: Callable[..., Any], text: list[str], run_dir: Path, model: str
) -> list[tuple[float, float]]:
    done = command("train", *text, f"model={model}", *SETTINGS, f"run_dir={run_dir}")
    assert done.code == 0, done.err
    with (run_dir / "metrics.csv").open() as file:
        return [(float(row["train_nll"]), float(row["valid_nll"])) for row in csv.DictReader(file)]


@pytest.mark.parametrize("model", GOLDEN)
def test_the_losses_are_those_of_before(
    command: Callable[..., Any], text: list[str], tmp_path: Path, model: str
) -> None:
    found = losses(command, text, tmp_path / "run", model)
    for epoch, golden in zip(found, GOLDEN[model], strict=True):
        assert epoch == pytest.approx(golden, rel=2e-6)
