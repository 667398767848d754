"""Weights that a run starts from."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import hornn
from commands.outcomes import refusal, result_of
from hornn.cells.deep import DeepRnn, StackedRnn
from hornn.cells.elman import Rnn
from hornn.checkpoint import CARD, FORMAT
from hornn.data.vocabulary import Vocabulary
from hornn.heads.two_level import TwoLevelSoftmaxHead
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
    copied = start_from(network, str(tmp_path / "best.ckpt"), interface).names
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
    message = (
        "has no vocabulary, and this run's data have one" if part == CARD else r"lacks a part of a model \("
    )
    with pytest.raises(ValueError, match=rf"init_from=.*best\.ckpt {message}"):
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


WORDS = ["<unk>", "b", "<eos>", "a", "d"]  # of the run that starts; the checkpoint has others


@pytest.fixture
def trained(tmp_path: Path) -> SequenceModel:
    """A network whose checkpoint, `best.ckpt`, knows the words <eos>, a, b, c and <unk>."""
    torch.manual_seed(0)
    network = SequenceModel([1] * 5, partial(Rnn, hidden_size=H), output_bias=True, precision="fp32")
    torch.nn.init.normal_(network.head.b_out)
    words = ["<eos>", "a", "b", "c", "<unk>"]
    card = {"format": FORMAT, "vocabulary": Vocabulary(words, [1] * 5).state()}
    weights = {f"network.{name}": value for name, value in network.state_dict().items()}
    torch.save({CARD: card, "state_dict": weights}, tmp_path / "best.ckpt")
    return network


@pytest.mark.parametrize("head", [False, True])
def test_words_of_both_vocabularies_keep_their_rows(
    tmp_path: Path, trained: SequenceModel, head: bool
) -> None:
    """The same number of words, in another order, one of them new: no row goes to another word."""
    torch.manual_seed(1)
    network = SequenceModel([1] * 5, partial(Rnn, hidden_size=H), output_bias=True, precision="fp32")
    fresh = {name: weight.clone() for name, weight in network.named_parameters()}
    interface = {"vocabulary": Vocabulary(WORDS, [1] * 5).state()}
    start = start_from(network, str(tmp_path / "best.ckpt"), interface, head)
    assert start.note == "; of the 5 words 4 keep their rows, the others start anew"
    by_word = ["embedding.weight", *(["head.W_out", "head.b_out"] if head else [])]
    assert start.names == [name for name in fresh if name in by_word or name.startswith("cells.")]
    for name, weight in network.named_parameters():
        before = trained.get_parameter(name)
        if name in by_word:
            assert_close(weight[:4], before[[4, 2, 0, 1]], rtol=0, atol=0)
            assert_close(weight[4], fresh[name][4], rtol=0, atol=0)
        else:
            assert_close(weight, before if name in start.names else fresh[name], rtol=0, atol=0)


def test_a_vocabulary_of_another_size_keeps_its_rows_too(tmp_path: Path, trained: SequenceModel) -> None:
    network = SequenceModel([1] * 2, partial(Rnn, hidden_size=H), tie_weights=True, precision="fp32")
    interface = {"vocabulary": Vocabulary(["b", "<eos>"], [1, 1]).state()}
    assert start_from(network, str(tmp_path / "best.ckpt"), interface).note.startswith("; of the 2 words 2")
    assert_close(network.head.W_out, trained.get_parameter("embedding.weight")[[2, 0]], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["x", "<eos>", "<unk>"],
            "has no word of this run's vocabulary: give a checkpoint trained on text of the",
        ),
        (
            None,
            "has a vocabulary, and this run's data none: give a checkpoint trained on data of the same kind",
        ),
    ],
)
def test_vocabularies_without_a_common_word_are_refused(
    tmp_path: Path, trained: SequenceModel, words: list[str] | None, message: str
) -> None:
    interface = {"vocabulary": Vocabulary(words, [1] * 3).state()} if words else {}
    with pytest.raises(ValueError, match=message):
        start_from(trained, str(tmp_path / "best.ckpt"), interface)


def test_an_output_layer_that_does_not_fit_is_refused(tmp_path: Path, trained: SequenceModel) -> None:
    """A two-level softmax has other matrices; and its clusters are of one vocabulary."""
    two_level = partial(TwoLevelSoftmaxHead, num_clusters=2)
    network = SequenceModel([3, 2, 2, 1, 1], partial(Rnn, hidden_size=H), head=two_level)
    interface = {"vocabulary": Vocabulary(WORDS, [1] * 5).state()}
    with pytest.raises(
        ValueError, match=r"init_from_head=true: .*best\.ckpt has no output layer that fits this"
    ):
        start_from(network, str(tmp_path / "best.ckpt"), interface, head=True)


def test_a_trained_network_adapts_to_another_text(
    command: Callable[..., Any], small: list[str], tmp_path: Path
) -> None:
    """With its output layer, the first epoch of a text of one's own is better than from scratch."""
    first = tmp_path / "first"
    assert command("train", *small, f"run_dir={first}").code == 0
    lm = hornn.load(first / "best.ckpt")
    for split, times in (("train", 30), ("valid", 3), ("test", 4)):
        (tmp_path / split).write_text(" ".join(["newword", *lm.words[:20]] * times) + "\n")
    files = ["data=files", *(f"data.{split}={tmp_path / split}" for split in ("train", "valid", "test"))]
    own = [*small, *files, "data.batch_size=1", "data.seq_len=10", "init_from_lr=1", "trainer.max_epochs=1"]
    start = [
        *own,
        f"init_from={first / 'best.ckpt'}",
        "init_from_head=true",
        f"run_dir={tmp_path / 'adapted'}",
    ]
    done = command("train", *start)
    assert (done.code, done.err) == (0, "")
    assert "keep their rows, the others start anew" in done.out
    assert command("train", *own, f"run_dir={tmp_path / 'scratch'}").code == 0
    assert result_of(tmp_path / "adapted")["test_ppl"] < result_of(tmp_path / "scratch")["test_ppl"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "init_from_head=true",
            "init_from_head=true is of a run that starts from another one: give init_from=",
        ),
        ("init_from_head=1", "init_from_head must be true or false, got 1"),
    ],
)
def test_the_output_layer_of_no_other_run(
    command: Callable[..., Any], small: list[str], tmp_path: Path, given: str, message: str
) -> None:
    assert message in refusal(command("train", *small, given, f"run_dir={tmp_path / 'run'}"))
    assert not (tmp_path / "run").exists()
