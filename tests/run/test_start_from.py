"""Weights that a run starts from."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from commands.outcomes import refusal, result_of
from hornn.cells.deep import DeepRnn, StackedRnn
from hornn.cells.elman import Rnn
from hornn.checkpoint import CARD, FORMAT
from hornn.data.vocabulary import Vocabulary
from hornn.network import SequenceModel
from hornn.run.start_from import start_from
from hornn.run.time_limit import TimeLimit
from small_models import H, V

DEEP = partial(DeepRnn, shortcuts=True)


@pytest.mark.parametrize(
    ("first", "then", "fresh"),
    [
        (DEEP, partial(DEEP, output_depth=2), {"cells.0.predict.0.W"}),
        (partial(StackedRnn, depth=1), StackedRnn, {"cells.0.U.0", "cells.0.W_h.1"}),
    ],
)
def test_a_deeper_network_takes_over_all_but_what_is_new_and_the_output(
    tmp_path: Path, first: Any, then: Any, fresh: set[str]
) -> None:
    """The DOT(S)-RNN starts from a DT(S)-RNN, the sRNN from a RNN (Pascanu et al. 2014, section 5.1)."""
    torch.manual_seed(0)
    trained, network = (
        SequenceModel([1] * V, partial(cell, hidden_size=H, embedded_input=True), precision="fp32")
        for cell in (first, then)
    )
    card = {"format": FORMAT, "vocabulary": {"words": ["a", "<eos>"]}}
    weights = {f"network.{name}": value for name, value in trained.state_dict().items()}
    torch.save({CARD: card, "state_dict": weights}, tmp_path / "best.ckpt")
    interface = {"vocabulary": Vocabulary(["a", "<eos>"], [1, 1]).state()}
    copied = start_from(network, str(tmp_path / "best.ckpt"), interface)
    found = dict(network.named_parameters())
    assert found.keys() - copied == {"head.W_out", *fresh}
    for name in copied:
        assert_close(found[name], trained.get_parameter(name), rtol=0, atol=0)


def test_what_is_taken_and_what_is_not_is_told_and_needed_once(
    command: Callable[..., Any], small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was cut off goes on without the checkpoint that it started from."""
    first, second = tmp_path / "first", tmp_path / "second"
    assert command("train", *small, "model=dts_rnn", f"run_dir={first}").code == 0
    start = [*small, "model=dots_rnn", f"init_from={first / 'best.ckpt'}", f"run_dir={second}"]
    done = command("train", *start)
    assert (done.code, done.err) == (0, "")
    taken = "taken from init_from, at 0.1 times the learning rate: "
    assert taken in done.out
    whole = result_of(second)["test_ppl"]
    left = iter([1.0] * 5 + [-1.0])
    with monkeypatch.context() as short:
        short.setattr(TimeLimit, "time_remaining", lambda self: next(left))
        cut = command("train", *start, "overwrite=true", "trainer.max_time=00:00:00:09")
    assert "trainer.max_time is over, in epoch 1" in cut.out
    (first / "best.ckpt").unlink()
    done = command("train", *start)
    assert (done.code, done.err) == (0, "")
    assert taken in done.out
    assert result_of(second)["test_ppl"] == whole
    saved = torch.load(second / "last.ckpt", weights_only=True)
    saved["training"]["pretrained"] = ["\x1b]0;a title\x07"]
    torch.save(saved, second / "last.ckpt")
    (second / "result.json").unlink()
    done = command("train", *start)
    assert "\x1b" not in done.out
    assert f"there is no checkpoint {first / 'best.ckpt'}" in refusal(done)


def test_an_input_matrix_alone_is_no_start(
    command: Callable[..., Any], small: list[str], tmp_path: Path
) -> None:
    first = tmp_path / "first"
    assert command("train", *small, "model.order=2", f"run_dir={first}").code == 0
    words = [*small, "model.order=3", f"init_from={first / 'best.ckpt'}", f"run_dir={tmp_path / 'second'}"]
    line = refusal(command("train", *words))
    assert "has no recurrent parameter of this model's names and shapes (cells.0.W_h)" in line


@pytest.mark.parametrize("part", [CARD, "state_dict"])
def test_a_checkpoint_without_a_part(tmp_path: Path, part: str) -> None:
    held = {CARD: {"format": FORMAT, "vocabulary": {"words": ["<eos>"]}}, "state_dict": {}}
    held[part] = {"format": FORMAT} if part == CARD else None
    torch.save(held, tmp_path / "best.ckpt")
    network = SequenceModel([1] * V, partial(DEEP, hidden_size=H))
    with pytest.raises(ValueError, match=r"init_from=.*best\.ckpt lacks a part of a model \("):
        start_from(network, str(tmp_path / "best.ckpt"), {"vocabulary": Vocabulary(["<eos>"], [1]).state()})


@pytest.mark.parametrize(
    ("change", "held"),
    [
        (Tensor.bfloat16, "bfloat16"),
        (Tensor.double, "float64"),
    ],
)
def test_a_weight_that_no_training_keeps_is_refused(
    tmp_path: Path, change: Callable[[Tensor], Tensor], held: str
) -> None:
    """Whoever made the checkpoint; what is no weight of the network's does not matter."""
    network = SequenceModel([1] * V, partial(Rnn, hidden_size=H))
    vocabulary = Vocabulary(["<eos>"], [1]).state()
    weights = {"network.cells.0.W_h": change(torch.zeros(H, H)), 1: torch.zeros(1)}
    torch.save(
        {CARD: {"format": FORMAT, "vocabulary": vocabulary}, "state_dict": weights}, tmp_path / "best.ckpt"
    )
    with pytest.raises(ValueError, match=rf"best\.ckpt holds cells\.0\.W_h as {held}, a run keeps"):
        start_from(network, str(tmp_path / "best.ckpt"), {"vocabulary": vocabulary})


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("given", "said"), [("", "''"), ("[]", "[]"), ("false", "False"), ("0", "0"), ("[a.ckpt]", "['a.ckpt']")]
)
def test_what_names_no_checkpoint_is_refused(
    command: Callable[..., Any], small: list[str], tmp_path: Path, given: str, said: str
) -> None:
    """Only null means none."""
    line = refusal(command("train", *small, f"init_from={given}", f"run_dir={tmp_path / 'run'}"))
    assert f"init_from must be the path of a checkpoint or null, got {said}" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "interface",
    [
        {"vocabulary": Vocabulary(["b", "<eos>"], [1, 1]).state()},
        {"vocabulary": Vocabulary(["<eos>", "a"], [1, 1]).state()},  # the same words with other ids
        {},  # as of data that are no text
    ],
)
def test_weights_of_another_vocabulary_are_refused(tmp_path: Path, interface: dict[str, Any]) -> None:
    network = SequenceModel([1] * V, partial(Rnn, hidden_size=H))
    card = {"format": FORMAT, "vocabulary": Vocabulary(["a", "<eos>"], [1, 1]).state()}
    weights = {"network.cells.0.W_h": torch.zeros(H, H)}
    torch.save({CARD: card, "state_dict": weights}, tmp_path / "best.ckpt")
    with pytest.raises(ValueError, match=r"best\.ckpt has another vocabulary: give a checkpoint trained on"):
        start_from(network, str(tmp_path / "best.ckpt"), interface)
