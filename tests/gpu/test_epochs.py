"""A run on a GPU has the losses of the run on the CPU."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu.conftest import Curve, numbers_of
from reference.cases import MODEL_FOLDER

pytestmark = pytest.mark.gpu

TOLERANCE = 2e-5  # relative; some thirty updates pass on the rounding of the first
OPTIMIZERS = sorted(path.stem for path in MODEL_FOLDER.with_name("optimizer").glob("*.yaml"))
# So that averages are there, and steps not too long.
SETTINGS = {"asgd": ("optimizer.start=5", "optimizer.lr=0.5")}
VARIANTS = {
    "max-norm": ("optimizer.max_norm=0.5", "optimizer.clip=0.1", "optimizer.clip_mode=element"),
    "no momentum": ("optimizer.momentum=0", "optimizer.clip=null"),
    "overlapping windows": ("model=lstm", "bptt_window=15", "network.state_grad_norm=0.1"),
    "two-level softmax": ("model=scrn", "head=two_level", "network.output_bias=true"),
    "tied weights": ("model=gru", "network.tie_weights=true", "network.num_layers=2"),
    "a lower rate": ("schedule=constant_then_halve", "schedule.constant_epochs=1"),
    "gates": ("model=hornn_gated",),
    "context": ("model=scrn", "bptt_window=15", "network.state_grad_norm=0.1"),
    "no loop": ("model=nnlm",),
    "looked into": ("callbacks=layer_norms",),
}


def assert_same_curve(curve: Curve, *words: str, epochs: int = 2) -> list[tuple[float, float, float]]:
    """The CPU, and a GPU that runs updates as they are written, and one that records and replays them.

    Returns the numbers of the CPU's epochs.
    """
    expected = curve("cpu", *words, "trainer=cpu")
    assert len(expected) == epochs
    for backend in ("eager", "graph", "auto"):
        if backend == "graph" and "model=nnlm" in words:
            continue
        found = curve(backend, *words, "trainer=gpu", f"network.backend={backend}")
        for epoch, numbers in zip(found, expected, strict=True):
            assert epoch == pytest.approx(numbers, rel=TOLERANCE), backend
    return expected


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer(name: str, curve: Curve) -> None:
    assert_same_curve(curve, f"optimizer={name}", *SETTINGS.get(name, ()))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant(name: str, curve: Curve) -> None:
    assert_same_curve(curve, *VARIANTS[name])


def test_training_goes_on_from_restored_weights(curve: Curve) -> None:
    words = ("model=hornn_fofe", "schedule.threshold=10", "schedule.restore_best=true", "schedule.factor=0.9")
    numbers = assert_same_curve(curve, *words, "optimizer.lr=0.1", "trainer.max_epochs=5", epochs=5)
    losses = [valid_nll for _, valid_nll, _ in numbers]
    assert losses[3] > min(losses[:3]), "the fourth epoch leaves nothing to restore"


@pytest.mark.parametrize("model", ["dts_rnn", "hornn_gated"])
def test_music(
    model: str, command: Callable[..., Any], corpus_root: Callable[[str], str], tmp_path: Path
) -> None:
    """Sequences of unequal length, padded and masked, whose loops are recorded."""
    music = ["data=music", f"data.root={corpus_root('music/JSB_Chorales.mat')}", "data.set=jsb_chorales"]
    words = [
        *music,
        "data.seq_len=20",
        f"model={model}",
        "model.hidden_size=12",
        "logger=csv",
        "trainer.max_epochs=2",
    ]
    for trainer in ("cpu", "gpu"):
        done = command("train", *words, f"trainer={trainer}", f"run_dir={tmp_path / trainer}")
        assert done.code == 0, done.err
    for epoch, numbers in zip(numbers_of(tmp_path / "gpu"), numbers_of(tmp_path / "cpu"), strict=True):
        assert epoch == pytest.approx(numbers, rel=TOLERANCE)


def test_a_result_names_the_gpu_and_scores_the_test_text_there(curve: Curve, tmp_path: Path) -> None:
    curve("cpu", "trainer=cpu")
    curve("gpu", "trainer=gpu")
    cpu, gpu = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("cpu", "gpu"))
    assert gpu["name"] == cpu["name"]
    assert gpu["test_ppl"] == pytest.approx(cpu["test_ppl"], rel=TOLERANCE)
    assert not gpu["device"].startswith("cpu")
    assert gpu["peak_memory_mb"] > 0
    assert not gpu["native_kernels"]


def test_a_training_that_diverges_says_when(
    command: Callable[..., Any], small: list[str], tmp_path: Path
) -> None:
    """A replayed update is looked at later, and found at fault all the same."""
    said = []
    for backend in ("eager", "graph"):
        words = ["trainer=gpu", "optimizer.lr=1e8", f"network.backend={backend}", "network.precision=fp32"]
        done = command("train", *small, *words, f"run_dir={tmp_path / backend}")
        assert done.code == 2
        said += re.findall("training diverged at update [0-9]+", done.err)
    assert len(said) == 2
    assert said[0] == said[1]


def test_noise_and_dropout_are_drawn_from_the_seed(curve: Curve) -> None:
    words = ("trainer=gpu", "weight_noise=0.05", "network.dropout=0.3", "network.variational=true")
    one, other = curve("one", *words), curve("other", *words)
    for epoch, numbers in zip(other, one, strict=True):
        assert epoch == pytest.approx(numbers, rel=TOLERANCE)
