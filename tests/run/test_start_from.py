"""Weights that a run starts from."""

import re
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
WORDS = ["<unk>", "b", "<eos>", "a", "d"]  # of the run that starts; the checkpoint has others


def text_of(words: list[str], counts: list[int] | None = None, unit: str = "word") -> dict[str, Any]:
    """What data of these words say, and a card that holds it."""
    tokenizer = {"unit": unit, "eos": True, "lowercase": False}
    return {"vocabulary": Vocabulary(words, counts or [1] * len(words)).state(), "tokenizer": tokenizer}


def write(path: Path, network: SequenceModel, interface: dict[str, Any]) -> str:
    weights = {f"network.{name}": value for name, value in network.state_dict().items()}
    torch.save({CARD: {"format": FORMAT, **interface}, "state_dict": weights}, path)
    return str(path)


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
    interface = text_of(["a", "<eos>"])
    copied = start_from(network, write(tmp_path / "best.ckpt", trained, interface), interface)
    found = dict(network.named_parameters())
    assert found.keys() - copied.keys() == {"head.W_out", *fresh}
    assert set(copied.values()) == {None}
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
    held: dict[str, Any] = {CARD: {"format": FORMAT, **text_of(["<eos>"])}, "state_dict": {}}
    held[part] = {"format": FORMAT} if part == CARD else None
    torch.save(held, tmp_path / "best.ckpt")
    network = SequenceModel([1] * V, partial(DEEP, hidden_size=H))
    message = "reads no text, and this run reads words" if part == CARD else r"lacks a part of a model \("
    with pytest.raises(ValueError, match=rf"init_from=.*best\.ckpt {message}"):
        start_from(network, str(tmp_path / "best.ckpt"), text_of(["<eos>"]))


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
    weights = {"network.cells.0.W_h": change(torch.zeros(H, H)), 1: torch.zeros(1)}
    card = {"format": FORMAT, **text_of(["<eos>"])}
    torch.save({CARD: card, "state_dict": weights}, tmp_path / "best.ckpt")
    with pytest.raises(ValueError, match=rf"best\.ckpt holds cells\.0\.W_h as {held}, a run keeps"):
        start_from(network, str(tmp_path / "best.ckpt"), text_of(["<eos>"]))


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


def make(words: int = 5, **settings: Any) -> SequenceModel:
    return SequenceModel([1] * words, partial(Rnn, hidden_size=H), **{"precision": "fp32", **settings})


@pytest.fixture
def trained(tmp_path: Path) -> SequenceModel:
    """A network whose checkpoint, `best.ckpt`, knows the words <eos>, a, b, c and <unk>."""
    torch.manual_seed(0)
    network = make(output_bias=True)
    torch.nn.init.normal_(network.head.b_out)
    write(tmp_path / "best.ckpt", network, text_of(["<eos>", "a", "b", "c", "<unk>"]))
    return network


@pytest.mark.parametrize("head", [False, True])
def test_words_of_both_vocabularies_keep_their_rows(
    tmp_path: Path, trained: SequenceModel, head: bool
) -> None:
    """The same number of words, in another order, one of them new: no row goes to another word."""
    torch.manual_seed(1)
    network = make(output_bias=True)
    fresh = {name: weight.clone() for name, weight in network.named_parameters()}
    taken = start_from(network, str(tmp_path / "best.ckpt"), text_of(WORDS), head)
    by_word = ["embedding.weight", *(["head.W_out", "head.b_out"] if head else [])]
    expected = {
        name: 4 if name in by_word else None for name in fresh if not name.startswith("head.") or head
    }
    assert taken == expected
    for name, weight in network.named_parameters():
        before = trained.get_parameter(name)
        if name in by_word:
            assert_close(weight[:4], before[[4, 2, 0, 1]], rtol=0, atol=0)
            assert_close(weight[4], fresh[name][4], rtol=0, atol=0)
        else:
            assert_close(weight, before if name in taken else fresh[name], rtol=0, atol=0)


@pytest.mark.parametrize(("head", "source"), [(False, "embedding.weight"), (True, "head.W_out")])
def test_a_tied_matrix_is_the_embedding_or_the_output_layer_that_is_asked_for(
    tmp_path: Path, trained: SequenceModel, head: bool, source: str
) -> None:
    """Of a network whose two are apart. The vocabulary is of another size, too."""
    network = make(2, tie_weights=True)
    taken = start_from(network, str(tmp_path / "best.ckpt"), text_of(["b", "<eos>"]), head)
    assert taken["embedding.weight"] == 2
    assert_close(network.head.W_out, trained.get_parameter(source)[[2, 0]], rtol=0, atol=0)


def test_a_tied_output_layer_comes_without_the_bias_that_it_lacked(tmp_path: Path) -> None:
    network = make(tie_weights=True, output_bias=True)
    path = write(tmp_path / "best.ckpt", make(tie_weights=True), text_of(WORDS))
    assert "head.b_out" not in start_from(network, path, text_of(WORDS), head=True)


@pytest.mark.parametrize(
    ("interface", "message"),
    [
        (
            text_of(["x", "<eos>", "<unk>"]),
            "has no word of this run's vocabulary: give a checkpoint trained on text",
        ),
        (
            text_of(["a", "<eos>"], unit="char"),
            "reads words, and this run reads characters: give a checkpoint of",
        ),
        ({}, "reads words, and this run reads no text: give a checkpoint of the same kind"),
    ],
)
def test_vocabularies_without_a_common_word_are_refused(
    tmp_path: Path, trained: SequenceModel, interface: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        start_from(trained, str(tmp_path / "best.ckpt"), interface)


TWO_LEVEL = partial(TwoLevelSoftmaxHead, num_clusters=2)


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (make(), text_of(WORDS)),
        (make(head=TWO_LEVEL), text_of(WORDS, [9, 1, 1, 1, 1])),  # clusters of one word and of four
        (make(head=TWO_LEVEL), text_of(WORDS[::-1])),
    ],
)
def test_an_output_layer_that_does_not_fit_is_refused(
    tmp_path: Path, before: SequenceModel, text: dict[str, Any]
) -> None:
    """A two-level softmax has other matrices; and its clusters are of one text."""
    path = write(tmp_path / "best.ckpt", before, text)
    with pytest.raises(
        ValueError, match=r"init_from_head=true: .*best\.ckpt has no output layer that fits this"
    ):
        start_from(make(head=TWO_LEVEL), path, text_of(WORDS), head=True)
    if not before.head.by_word:
        assert "head.W_word" in start_from(make(head=TWO_LEVEL), path, text, head=True)


def test_an_output_layer_of_other_phones_is_refused(tmp_path: Path) -> None:
    """As many states of other phones are others."""

    def said(phone: str) -> dict[str, Any]:
        return {"recogniser": {"pronunciations": [["YES", "Y", phone], ["NO", "N"]]}}

    before = make(input_width=3)
    path = write(tmp_path / "best.ckpt", before, said("EH"))
    assert "head.W_out" in start_from(make(input_width=3), path, said("EH"), head=True)
    assert "head.W_out" not in start_from(make(input_width=3), path, said("AH"))
    with pytest.raises(ValueError, match=r"best\.ckpt has an output layer of other phones than this run's"):
        start_from(make(input_width=3), path, said("AH"), head=True)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    network = make()
    torch.nn.init.constant_(network.get_parameter("cells.0.W_h"), float("nan"))
    path = write(tmp_path / "best.ckpt", network, text_of(WORDS))
    with pytest.raises(
        ValueError, match=r"cells\.0\.W_h is not finite: its weights are damaged or have diverged"
    ):
        start_from(make(), path, text_of(WORDS))


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
    assert "init_from_lr=0 would keep the words that start anew" in refusal(
        command("train", *start, "init_from_lr=0")
    )
    done = command("train", *start)
    (tmp_path / "adapted" / "result.json").unlink()
    again = command("train", *start)
    rows = r"embedding\.weight \(\d+ words\), cells.*, head\.W_out \(\d+ words\); anew: the other words\n"
    assert re.search(rows, done.out)
    assert re.search(rows, again.out)
    assert (done.code, done.err) == (0, "")
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
