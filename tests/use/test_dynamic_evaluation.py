"""Scoring by a network that learns from what it has scored."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hornn.data.streams import ChunkStream
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import Vocabulary
from hornn.network import detach_all
from hornn.use.scorers import NetworkScorer
from hornn.use.scoring import score_dynamically, score_stream
from small_models import V, build


@pytest.mark.parametrize("tie_weights", [False, True])
def test_dynamic_evaluation_is_gradient_descent(tie_weights: bool) -> None:
    ids = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])
    network, reference = build(tie_weights=tie_weights), build(tie_weights=tie_weights)
    scores = score_dynamically(network, ids, 0, 4, lr=0.3)
    descent = torch.optim.SGD(reference.parameters(), lr=0.3)
    state, expected = reference.initial_state(1), []
    for chunk in ChunkStream(ids, 0, 1, 4):
        features, state = reference(chunk.inputs, detach_all(state))
        nll = reference.head.nll(features, chunk.targets)
        expected += nll.flatten().tolist()
        descent.zero_grad()
        nll.mean().backward()
        descent.step()
    assert_close(scores, np.array(expected), rtol=1e-12, atol=0)
    for found, weight in zip(network.parameters(), reference.parameters(), strict=True):
        assert_close(found, weight)


def test_what_training_does_not_move_stays() -> None:
    network, ids = build(), np.array([3, 1, 4, 1, 5, 9, 2, 6])
    fixed, moved = network.cells[0].W_h.requires_grad_(False), network.cells[0].W_in
    before = [weight.detach().clone() for weight in (fixed, moved)]
    score_dynamically(network, ids, 0, 4, lr=0.3)
    assert torch.equal(fixed, before[0])
    assert not torch.equal(moved, before[1])


def test_dynamic_evaluation_scores_before_it_learns() -> None:
    ids = np.array([3, 1, 4, 1, 5, 9, 2, 6] * 30)
    still = score_stream(build(), ids, 0, 1, 8)
    learned = score_dynamically(build(), ids, 0, 8, lr=0.3)
    assert_close(learned[:8], still[:8])
    assert learned[-40:].mean() < still[-40:].mean() - 0.2
    tiny = score_dynamically(build(), ids, 0, 8, lr=1e-12)
    assert_close(tiny, still, rtol=1e-8, atol=0)
    with pytest.raises(ValueError, match="dynamic_lr must be > 0"):
        score_dynamically(build(), ids, 0, 8, lr=math.nan)


def test_without_a_length_a_network_learns_every_hundred_tokens() -> None:
    """Whatever it reads at once where it does not learn."""
    ids = np.random.default_rng(0).integers(V, size=230)
    card = {"tokenizer": Tokenizer("word", eos=True).state()}
    scorer = NetworkScorer("a network", build(), card, Vocabulary(["<eos>"], [1]))
    scorer.prepare(batch_size=1, seq_len=None, dynamic_lr=0.3)
    assert "weights updated every 100 tokens" in scorer.read_as
    assert_close(scorer.score(ids), score_dynamically(build(), ids, 0, 100, lr=0.3))
