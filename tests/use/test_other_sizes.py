"""A checkpoint whose weights fit its own words and whose words fit no task: it is refused when it is opened."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hornn.build import NETWORK, build_network
from hornn.card import chosen
from hornn.checkpoint import FORMAT, write_checkpoint
from hornn.data.midi import KEYS
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import EOS, Vocabulary
from hornn.speech.features import BANDS
from hornn.use import sequences
from hornn.use.checkpoints import open_checkpoint
from hornn.use.pieces import GivenMusic

MUSIC = {"counts": [1] * KEYS, "input_width": KEYS}
SPEECH = {"counts": [1] * 15, "input_width": BANDS, "recogniser": {}}
TEXT = {
    "vocabulary": Vocabulary(["a", "b", EOS], [3, 2, 1]).state(),
    "tokenizer": Tokenizer("word", eos=True).state(),
}


def write(path: Path, head: str, parts: dict[str, Any]) -> Path:
    card = {
        "format": FORMAT,
        "name": "stranger",
        "seed": 1,
        "where": {},
        "choices": {"model": "rnn", "network": "default", "head": head, "data": "midi"},
        "config": {"model": {"hidden_size": 4}, "data": {}},
        "data": {"name": "some", "text_checksum": "", "valid_is_test": False},
        **parts,
    }
    nodes = {group: chosen(card, group) for group in NETWORK}
    network = build_network(nodes, parts.get("counts", [3, 2, 1]), parts.get("input_width"))
    write_checkpoint(
        {"state_dict": {f"network.{key}": w for key, w in network.state_dict().items()}}, path, card
    )
    return path


@pytest.mark.parametrize(
    ("head", "parts"),
    [("bernoulli", MUSIC), ("softmax", SPEECH), ("softmax", TEXT), ("two_level", TEXT)],
)
def test_what_fits_is_opened(tmp_path: Path, head: str, parts: dict[str, Any]) -> None:
    assert open_checkpoint(write(tmp_path / "a.ckpt", head, parts), "cpu").name == str(tmp_path / "a.ckpt")


@pytest.mark.parametrize(
    ("head", "parts", "said"),
    [
        ("bernoulli", {**MUSIC, "counts": [1] * 50}, "reads 88 numbers a step and predicts 50 keys"),
        ("softmax", MUSIC, "reads 88 numbers a step and predicts 88 classes"),
        ("softmax", {**SPEECH, "input_width": 10}, "reads 10 numbers a step and predicts 15 classes"),
        ("bernoulli", SPEECH, "reads 80 numbers a step and predicts 15 keys"),
        ("bernoulli", TEXT, "predicts keys, and a model of text predicts classes"),
    ],
)
def test_what_fits_no_task_is_refused(tmp_path: Path, head: str, parts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        open_checkpoint(write(tmp_path / "a.ckpt", head, parts), "cpu")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("head", "parts"), [("bernoulli", MUSIC), ("softmax", {"counts": [1] * 5, "input_width": 3})]
)
def test_data_are_read_by_a_model_of_their_sizes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, parts: dict[str, Any]
) -> None:
    """A task of one's own may have any sizes, so it is its data that tell."""
    scorer = open_checkpoint(write(tmp_path / "a.ckpt", head, parts), "cpu")
    assert isinstance(scorer, sequences.SequenceScorer)
    data = GivenMusic([], 1, 1)
    data.pieces["train"] = [np.ones((3, KEYS))]
    monkeypatch.setattr(sequences, "data_of", lambda card, places, written: data)
    if parts is MUSIC:
        assert sequences.open_data(scorer, SimpleNamespace(), 2, 3) is data  # type: ignore[arg-type]
        return
    with pytest.raises(ValueError, match=r"a\.ckpt do not fit the midi corpus: train it anew"):
        sequences.open_data(scorer, SimpleNamespace(), 2, 3)  # type: ignore[arg-type]
