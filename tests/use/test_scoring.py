"""Scoring and sampling of a network, against its own probabilities read one token at a time."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hornn.cells.hornn import FofeHornn
from hornn.network import SequenceModel
from hornn.use.scoring import Reading, begin, keep_likeliest, sample, score_lines, score_stream

V, EOS = 9, 2


@pytest.fixture(scope="module")
def network() -> SequenceModel:
    torch.manual_seed(0)
    built = SequenceModel(
        [1] * V, partial(FofeHornn, hidden_size=5, order=3), 5, init_std=1.0, precision="fp32"
    )
    return built.double().eval()


@pytest.fixture(scope="module")
def ids() -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(V, size=53)


def read(network: SequenceModel, ids: list[int]) -> list[float]:
    """-ln P of each token, read alone and in order from the initial state."""
    state, before, found = network.initial_state(1), EOS, []
    with torch.no_grad():
        for token in ids:
            features, state = network(torch.tensor([[before]]), state)
            found.append(-float(network.head.log_probs(features[0, 0])[token]))
            before = token
    return found


@pytest.mark.parametrize("seq_len", [1, 7, 53, 1000])
def test_one_column_is_left_to_right(network: SequenceModel, ids: NDArray[np.int64], seq_len: int) -> None:
    np.testing.assert_allclose(
        score_stream(network, ids, EOS, 1, seq_len), read(network, list(ids)), rtol=1e-12
    )


@pytest.mark.parametrize("batch_size", [2, 5, 53])
def test_columns_carry_their_own_state(
    network: SequenceModel, ids: NDArray[np.int64], batch_size: int
) -> None:
    """Each column starts as a text does: from the initial state, with the start token as its first input."""
    found = score_stream(network, ids, EOS, batch_size, 4)
    expected = []
    for column in np.array_split(ids, batch_size):
        state = network.initial_state(1)
        before = EOS
        with torch.no_grad():
            for token in column:
                features, state = network(torch.tensor([[int(before)]]), state)
                expected.append(-float(network.head.log_probs(features[0, 0])[int(token)]))
                before = token
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("batch_size", "seq_len"), [(1, 100), (7, 3), (64, 100), (1000, 2)])
def test_lines_do_not_see_each_other(network: SequenceModel, batch_size: int, seq_len: int) -> None:
    draw = np.random.default_rng(1)
    lines = [draw.integers(V, size=length) for length in [3, 1, 0, 8, 8, 2] * 30]
    lengths = np.array([len(line) for line in lines])
    scores = score_lines(network, np.concatenate(lines), lengths, EOS, batch_size, seq_len)
    expected = [nll for line in lines for nll in read(network, list(line))]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("lengths", "calls", "tokens"),
    [
        ([3] * 7 + [600], 1 + 60, 21 + 600),  # the long line alone
        ([3] * 6 + [600] * 4, 1 + 60, 18 + 2400),
        ([3, 9, 4, 12, 1, 7, 2, 0], 2, 84),  # side by side, as far as a chunk reaches
        ([30, 31, 50, 64, 64, 66, 69, 70], 7, 560),
    ],
)
def test_a_long_line_does_not_lengthen_the_short_ones(
    network: SequenceModel, lengths: list[int], calls: int, tokens: int
) -> None:
    draw, read_at_once = np.random.default_rng(2), list[int]()
    lines = [draw.integers(V, size=length) for length in lengths]
    hook = network.register_forward_pre_hook(lambda _, given: read_at_once.append(given[0].numel()))
    scores = score_lines(network, np.concatenate(lines), np.array(lengths), EOS, 8, 10)
    hook.remove()
    assert (len(read_at_once), sum(read_at_once)) == (calls, tokens)
    expected = [nll for line in lines for nll in read(network, list(line))]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


class Same(Reading):
    """Of a model that always expects the same."""

    def __init__(self, log_probs: torch.Tensor) -> None:
        self.log_probs = log_probs

    def after(self, ids: Sequence[int]) -> Reading:
        return self


def draw_tokens(
    network: SequenceModel, seed: int, temperature: float, banned: tuple[int, ...] = ()
) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return list(sample(begin(network, EOS, [4]), 40, temperature, generator, banned))


def test_the_same_seed_draws_the_same_tokens(network: SequenceModel) -> None:
    assert draw_tokens(network, 1, 0.8) == draw_tokens(network, 1, 0.8)
    assert draw_tokens(network, 1, 0.8) != draw_tokens(network, 2, 0.8)
    assert len(draw_tokens(network, 1, 0.8)) == 40


def test_temperature_0_takes_the_likeliest(network: SequenceModel) -> None:
    tokens = draw_tokens(network, 1, 0)
    assert tokens == draw_tokens(network, 2, 0)
    past = [4]
    for token in tokens[:10]:
        losses = [read(network, [*past, candidate])[-1] for candidate in range(V)]
        assert token == int(np.argmin(losses))
        past.append(token)


def test_a_temperature_near_0_is_0(network: SequenceModel) -> None:
    assert draw_tokens(network, 1, 1e-320) == draw_tokens(network, 1, 0)


def test_banned_tokens_are_not_drawn(network: SequenceModel) -> None:
    assert 5 in draw_tokens(network, 1, 2.0)
    assert 5 not in draw_tokens(network, 1, 2.0, banned=(5,))


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_banned_token_is_not_drawn_where_it_alone_can_come(temperature: float) -> None:
    """As in an ARPA file whose last word nothing but `<unk>` follows."""
    certain = torch.tensor([0.0, 1.0, 0.0]).log().double()
    with pytest.raises(ValueError, match="every token that may be written has the probability 0"):
        list(sample(Same(certain), 1, temperature, torch.Generator(), banned=(1,)))


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_draws_follow_the_distribution(network: SequenceModel, temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [next(iter(sample(begin(network, EOS), 1, temperature, generator))) for _ in range(4000)]
    p = np.exp(-np.array([read(network, [token])[0] for token in range(V)]) / temperature)
    p /= p.sum()
    shares = np.bincount(draws, minlength=V) / len(draws)
    assert np.abs(shares - p).max() < 4 * math.sqrt(0.25 / len(draws))


@pytest.mark.parametrize("length", [0, -3])
def test_refuses_a_length(network: SequenceModel, length: int) -> None:
    with pytest.raises(ValueError, match=f"length must be a whole number >= 1, got {length}"):
        list(sample(begin(network, EOS), length, 1.0, torch.Generator()))


@pytest.mark.parametrize("temperature", [-0.1, math.nan, math.inf])
def test_refuses_a_temperature(network: SequenceModel, temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature must be >= 0 and finite"):
        list(sample(begin(network, EOS), 1, temperature, torch.Generator()))


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [(2, None, [1, 3]), (3, None, [1, 2, 3]), (None, 0.65, [1, 3]), (None, 0.75, [1, 2, 3]), (2, 0.5, [1])],
)
def test_the_likeliest_tokens_are_kept(top_k: int | None, top_p: float | None, kept: list[int]) -> None:
    """With both, `top_p` is a share of the probability that the tokens of `top_k` have together."""
    p = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64)
    found = keep_likeliest(p, top_k, top_p)
    assert found.nonzero().flatten().tolist() == kept
    assert torch.equal(found[kept], p[kept])


def test_the_fewest_tokens_that_reach_top_p_are_kept() -> None:
    p = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    assert keep_likeliest(p, None, 0.5).tolist() == [0, 0.5, 0]
    assert keep_likeliest(p, None, 1.0).tolist() == p.tolist()


def test_top_p_may_be_1() -> None:
    log_p = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
    generator = torch.Generator().manual_seed(0)
    assert set(sample(Same(log_p), 50, 1.0, generator, top_p=1)) == {0, 1}
