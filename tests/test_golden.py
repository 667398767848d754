"""The first losses of a seeded run on a toy corpus: a refactor must not move them."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Model -> (training, validation) loss of each of three epochs, nats per token.
GOLDEN: dict[str, list[tuple[float, float]]] = {
    "rnn": [(2.16391035, 2.16482199), (2.17970560, 2.15100382), (2.10869302, 2.11808774)],
    "lstm": [(2.19731705, 2.19701617), (2.19689054, 2.19675889), (2.19606011, 2.19613463)],
    "gru": [(2.19676364, 2.19681940), (2.19333446, 2.19273988), (2.16710290, 2.16046330)],
    "hornn": [(2.16107721, 2.16398298), (2.16193561, 2.15404089), (2.09570285, 2.15276112)],
    "hornn_max": [(2.16661018, 2.16840357), (2.21073729, 2.19425485), (2.16542920, 2.13963037)],
    "hornn_fofe": [(2.16515836, 2.16308325), (2.19529571, 2.16996694), (2.13705309, 2.11577583)],
    "hornn_gated": [(2.16556198, 2.15988114), (2.19264206, 2.18114660), (2.12301182, 2.11697435)],
}


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
