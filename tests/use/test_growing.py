"""A text that grows: each of its continuations is what the whole text is, and no continuation changes another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hornn
from hornn.research import make_network
from hornn.use.scoring import begin
from reference.cases import MODEL_NAMES

MODELS: dict[str, Any] = {
    "network": ["network/best.ckpt"],
    "counts": ["counts/best.ckpt"],
    "ARPA": ["kn.arpa"],
    "mixture": ["network/best.ckpt", "counts/best.ckpt"],
}


@pytest.fixture(params=MODELS)
def model(folder: Path, request: Any) -> hornn.Model:
    return hornn.load([folder / name for name in MODELS[request.param]])


def test_a_longer_text_is_read_on(model: hornn.Model) -> None:
    begun = model.read("a b")
    one, other = begun.after("c"), begun.after("d e")
    for text, whole in ((begun, "a b"), (one, "a b c"), (other, "a b d e"), (one.after("\nd"), "a b c\nd")):
        expected = model.read(whole).probabilities
        np.testing.assert_allclose(text.probabilities, expected, rtol=1e-5)
        assert expected.sum() == pytest.approx(1)
    assert begun.after("") is begun


def test_what_follows_is_scored_given_the_text(model: hornn.Model) -> None:
    (whole,) = model.score(["a b c nowhere\nd\n"], per_token=True)
    assert whole.token_texts
    assert whole.token_log_probs
    later = model.read("a b").score("c nowhere\nd\n")
    assert (later.token_texts, later.unknown) == (whole.token_texts[2:], 1)
    assert whole.token_unknown
    assert later.token_unknown == whole.token_unknown[2:]
    assert sum(later.token_unknown) == 1
    np.testing.assert_allclose(later.token_log_probs, whole.token_log_probs[2:], rtol=1e-5)
    assert later.log_prob == pytest.approx(sum(later.token_log_probs or ()))
    assert model.read("a").score("") == hornn.Score(0.0, 0, 0, (), (), ())


def test_the_words_and_the_probabilities_belong_together(model: hornn.Model) -> None:
    text = model.read("a")
    words = dict(text.next_words(len(model.words)))
    assert [words[word] for word in model.words] == text.probabilities.tolist()
    assert text.next_words(2) == model.next_words("a", 2)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_no_cell_changes_what_was_read(name: str) -> None:
    network = make_network(name, 11, hidden_size=8)
    network.prepare(torch.device("cpu"))
    text = begin(network, 0, [3, 4])
    before, first = text.log_probs.clone(), text.after([5]).log_probs
    text.after([6, 7]).after([8])
    assert torch.equal(text.log_probs, before)
    assert torch.equal(text.after([5]).log_probs, first)


def test_what_is_no_text_is_refused(model: hornn.Model) -> None:
    with pytest.raises(ValueError, match="text must be a string, got 3"):
        model.read("a").after(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="text must be a string, got None"):
        model.read("a").score(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prompt must be a string, got None"):
        model.read(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be a whole number >= 1, got 0"):
        model.read("a").next_words(0)
