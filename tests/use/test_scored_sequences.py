"""Separate sequences are scored whole and each in its place, whatever the split."""

from functools import partial

import numpy as np
import pytest
import torch

from hornn.cells.elman import Rnn
from hornn.data.midi import KEYS
from hornn.data.sequences import SequenceStream
from hornn.heads.bernoulli import BernoulliHead
from hornn.network import SequenceModel
from hornn.use.music_model import sample
from hornn.use.pieces import GivenMusic
from hornn.use.posteriors import log_probs_of
from hornn.use.sequences import log_probs, score_split


@pytest.fixture(scope="module")
def network() -> SequenceModel:
    torch.manual_seed(0)
    cell = partial(Rnn, hidden_size=6)
    return SequenceModel([1] * KEYS, cell, head=BernoulliHead, init_std=1.0, input_width=KEYS).eval()


@pytest.fixture(scope="module")
def data() -> GivenMusic:
    """Its training stream would cut the pieces into single frames and mix them."""
    draw = np.random.default_rng(0)
    pieces = [(draw.random((length, KEYS)) < 0.1).astype(np.uint8) for length in (7, 2, 12, 4, 9, 5)]
    given = GivenMusic(pieces, batch_size=2, seq_len=3)
    given.pieces["train"] = pieces
    return given


def test_the_training_split_is_scored_as_others_are(network: SequenceModel, data: GivenMusic) -> None:
    found, expected = (score_split(network, data, split) for split in ("train", "test"))
    assert found.nats.tolist() == expected.nats.tolist()
    assert (found.targets, found.hits) == (39, expected.hits)
    pieces = zip(log_probs(network, data, "train"), log_probs(network, data, "test"), strict=True)
    assert all((one == other).all() for one, other in pieces)


def test_mixed_batches_are_not_read_as_whole_sequences(network: SequenceModel, data: GivenMusic) -> None:
    stream = SequenceStream(data.stream("test").examples, 2, 3, seed=1)
    with pytest.raises(ValueError, match="give them without a seed"):
        log_probs_of(network, stream)


@pytest.mark.parametrize("temperature", [0, 0.5, 1.0])
def test_each_frame_is_drawn_from_what_all_before_it_say(network: SequenceModel, temperature: float) -> None:
    before = list(np.random.default_rng(1).random((4, KEYS)) < 0.1)
    one, same = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    for frame in sample(network, np.array(before), 6, temperature, one):
        inputs = torch.from_numpy(np.array([np.zeros(KEYS), *before], dtype=np.float32)).unsqueeze(1)
        features, _ = network(inputs, network.initial_state(1))
        logits = network.head.log_probs(features[-1, 0]).double().exp().logit()
        expected = logits > 0
        if temperature:
            drawn = torch.rand(KEYS, generator=same, dtype=torch.float64)
            expected = drawn < (logits / temperature).sigmoid()
        assert frame.tolist() == expected.int().tolist()
        before.append(frame)
