"""The first losses of a seeded run on a toy corpus: a refactor must not move them."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Model -> (training, validation) loss of each of three epochs, nats per token.
GOLDEN: dict[str, list[tuple[float, float]]] = {
    "rnn": [(2.16391178, 2.16470418), (2.17975017, 2.15147805), (2.10872965, 2.11850648)],
    "lstm": [(2.19732663, 2.19694487), (2.19687891, 2.19660235), (2.19597122, 2.19560554)],
    "gru": [(2.19676806, 2.19685475), (2.19356192, 2.19510795), (2.17013786, 2.17199101)],
    "hornn": [(2.16107747, 2.16365992), (2.16193858, 2.15420096), (2.09571624, 2.15277432)],
    "hornn_max": [(2.16661405, 2.16807208), (2.21076139, 2.19402531), (2.16551377, 2.13949837)],
    "hornn_fofe": [(2.16516020, 2.16277285), (2.19530046, 2.16965204), (2.13701626, 2.11589395)],
    "hornn_gated": [(2.16557270, 2.16014936), (2.19264538, 2.18120360), (2.12296020, 2.11753815)],
    "lstmp": [(2.19707966, 2.19693923), (2.19624134, 2.19563435), (2.18641657, 2.17502525)],
    "scrn": [(2.17022440, 2.14548181), (2.17377166, 2.15528943), (2.09846377, 2.11676414)],
    "hornn_sigmoid": [(2.17107812, 2.17428663), (2.17542213, 2.16429873), (2.10163625, 2.15937994)],
    "hornnp_sigmoid": [(2.16707689, 2.13872536), (2.14539303, 2.13718616), (2.17127654, 2.15448855)],
    "dots_rnn": [(2.16496395, 2.15062308), (2.17053177, 2.13946559), (2.10671002, 2.15129315)],
    "srnn": [(2.16298460, 2.16078332), (2.16670615, 2.14214666), (2.10210568, 2.14935222)],
    "clockwork": [(2.16504517, 2.16640045), (2.18522921, 2.17124924), (2.13093355, 2.11966467)],
    "gf_rnn": [(2.16111771, 2.16159706), (2.16415126, 2.14828846), (2.10892483, 2.16652988)],
    "hierarchical": [(2.16583501, 2.15829066), (2.19039018, 2.16608906), (2.14015464, 2.11799226)],
    "highway": [(2.16284075, 2.12652532), (2.18064815, 2.12759015), (2.13607129, 2.11782425)],
    "leaky_rnn": [(2.16305765, 2.14071746), (2.17898452, 2.13540414), (2.11765279, 2.11165431)],
    "nnlm": [(2.16871751, 2.13704320), (2.12807982, 2.13995679), (2.11453372, 2.09174157)],
    "dnn": [(2.16385124, 2.15214898), (2.15612965, 2.14138198), (2.10970241, 2.15624339)],
    "fofe_fnn": [(2.18240505, 2.15053645), (2.12885246, 2.13482808), (2.12881369, 2.15489957)],
    "memn2n": [(2.19416896, 2.18643647), (2.14917787, 3.22321192), (2.27941667, 2.15137013)],
}


SETTINGS = (  # all of them, so that a new default moves nothing
    *("model.hidden_size=8", "network.init_std=0.1", "network.precision=fp32", "network.backend=eager"),
    "loss_reduction=mean",
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


SOONER = (
    "rnn",
    "lstm",
    "gru",
    "hornn",
    "hornn_max",
    "hornn_fofe",
    "hornn_gated",
    "scrn",
    "dots_rnn",
    "hornn_sigmoid",
)


@pytest.mark.parametrize(
    "model", [pytest.param(model, marks=[] if model in SOONER else pytest.mark.thorough) for model in GOLDEN]
)
def test_the_losses_are_those_of_before(
    command: Callable[..., Any], text: list[str], tmp_path: Path, model: str
) -> None:
    found = losses(command, text, tmp_path / "run", model)
    for epoch, golden in zip(found, GOLDEN[model], strict=True):
        assert epoch == pytest.approx(golden, rel=2e-6)
