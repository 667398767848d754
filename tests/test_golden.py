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
    "lstmp": [(2.19707695, 2.19695170), (2.19624943, 2.19570337), (2.18663754, 2.17568162)],
    "scrn": [(2.17006942, 2.14477003), (2.17358617, 2.15500628), (2.09841697, 2.11562560)],
    "hornn_sigmoid": [(2.17100692, 2.17399196), (2.17531278, 2.16397065), (2.10151482, 2.15923407)],
    "hornnp_sigmoid": [(2.16708087, 2.13868244), (2.14540588, 2.13746635), (2.17130788, 2.15453068)],
    "dots_rnn": [(2.16496366, 2.15062914), (2.17052350, 2.13940564), (2.10670880, 2.15126859)],
    "srnn": [(2.16298469, 2.16073054), (2.16670639, 2.14216554), (2.10210776, 2.14928490)],
    "clockwork": [(2.16502324, 2.16642847), (2.18508595, 2.17053930), (2.13077321, 2.11965403)],
    "gf_rnn": [(2.16111872, 2.16162256), (2.16415341, 2.14828205), (2.10892246, 2.16655899)],
    "hierarchical": [(2.16582229, 2.15822468), (2.19038181, 2.16605729), (2.14015377, 2.11796495)],
    "highway": [(2.16283251, 2.12642116), (2.18065218, 2.12745888), (2.13607777, 2.11762644)],
    "leaky_rnn": [(2.16305625, 2.14079634), (2.17895253, 2.13528117), (2.11761942, 2.11164115)],
    "nnlm": [(2.16898833, 2.13694400), (2.12785700, 2.14688373), (2.11342141, 2.10596895)],
    "fofe_fnn": [(2.18142732, 2.14645419), (2.12855682, 2.13620502), (2.13874623, 2.16427676)],
    "memn2n": [(2.19500608, 2.18963738), (2.16308561, 2.13641135), (2.14777533, 2.12843836)],
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


@pytest.mark.parametrize("model", GOLDEN)
def test_the_losses_are_those_of_before(
    command: Callable[..., Any], text: list[str], tmp_path: Path, model: str
) -> None:
    found = losses(command, text, tmp_path / "run", model)
    for epoch, golden in zip(found, GOLDEN[model], strict=True):
        assert epoch == pytest.approx(golden, rel=2e-6)
