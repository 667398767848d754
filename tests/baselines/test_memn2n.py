"""The memory network against its transcription, in its limits, and the band of its products."""

from itertools import product
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from hornn.baselines.memn2n import MemN2N, read_band, write_band
from hornn.network import SequenceModel
from hornn.scan import scan
from reference.cases import draw, draw_state, fill, seeded, weights_of
from reference.memn2n import memn2n

T, B, D, V = 9, 3, 6, 11


@pytest.mark.parametrize(
    ("hops", "memory_size", "linear_size"), [(1, 1, 0), (1, 4, 6), (3, 4, None), (2, 20, 2)]
)
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("backend", ["eager", "parallel"])
def test_it_equals_the_transcription(
    hops: int, memory_size: int, linear_size: int | None, linear: bool, backend: str
) -> None:
    """From the start of a text: the table of the embedding is [A, C], as the network looks it up."""
    generator = seeded(1)
    cell = fill(MemN2N(2 * D, D, hops, memory_size, linear_size, linear=linear), generator)
    words, table = torch.randint(V, (T, B), generator=generator), draw(generator, V, 2 * D)
    y, _ = scan(cell, table[words], cell.initial_state(B), None, backend)
    A, C = table.numpy()[:, :D], table.numpy()[:, D:]
    for column in range(B):
        expected = memn2n(
            words[:, column].tolist(),
            A,
            C,
            **weights_of(cell),
            hops=hops,
            linear_size=cell.linear_size,
            linear=linear,
        )
        assert_close(y[:, column], torch.from_numpy(expected), rtol=1e-12, atol=1e-12)


def test_one_table_or_two_maps_on_top_of_an_embedding() -> None:
    apart = fill(MemN2N(4, D, 2, 3, embedded_input=False), seeded(0))
    both = MemN2N(2 * D, D, 2, 3).double()
    both.load_state_dict({name: apart.state_dict()[name] for name in both.state_dict()})
    x = draw(seeded(1), T, B, 4)
    embedded = torch.cat([x @ apart.A.T, x @ apart.C.T], dim=-1)
    y, _ = scan(apart, x, apart.initial_state(B))
    assert_close(y, scan(both, embedded, both.initial_state(B))[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["eager", "parallel"])
def test_a_word_leaves_the_memory(backend: str) -> None:
    cell = fill(MemN2N(2 * D, D, 2, memory_size=3), seeded(0))
    x = draw(seeded(1), T, B, 2 * D)
    changed = x.clone()
    changed[2] += 1.0
    y, other = (scan(cell, inputs, cell.initial_state(B), None, backend)[0] for inputs in (x, changed))
    moved = [bool((y[t] - other[t]).abs().max() > 1e-9) for t in range(T)]
    assert moved == [2 <= t <= 4 for t in range(T)]


@pytest.mark.parametrize("backend", ["eager", "parallel"])
def test_large_scores_do_not_overflow(backend: str) -> None:
    cell = MemN2N(2 * D, D, 2, memory_size=3)
    x = 1e4 * torch.randn(T, B, 2 * D)
    y, _ = scan(cell, x, cell.initial_state(B), None, backend)
    assert y.isfinite().all()
    gradients = torch.autograd.grad(y.sum(), list(cell.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_the_band_of_a_matrix() -> None:
    full = draw(seeded(0), 2, 4, 6)  # T = 4, M = 3
    band = read_band(full)
    assert_close(band, torch.stack([full[:, t, t : t + 3] for t in range(4)], dim=1), rtol=0, atol=0)
    back = write_band(band)
    assert_close(read_band(back), band, rtol=0, atol=0)
    assert back.count_nonzero() == band.numel()


def test_its_embedding_is_as_wide_as_its_keys_and_values() -> None:
    def cell(input_size: int) -> MemN2N:
        return MemN2N(input_size, 5, memory_size=7)

    assert MemN2N.embedding_width(hidden_size=5) == 10
    assert MemN2N.embedding_width(hidden_size=5, embedded_input=False) == 5
    network = SequenceModel([1] * V, cell, 10)
    assert network.num_parameters == 3 * 5 * V + 2 * 7 * 5 + 5 * 5  # A, C, W; T_A, T_C; H: no V x V anywhere


def test_saturation_is_that_of_the_rectified_units() -> None:
    y = torch.zeros(2, B, D)
    assert MemN2N(2 * D, D).saturation(y) == 1.0
    assert MemN2N(2 * D, D, linear_size=D).saturation(y) == 0.0
    y[..., D // 2 :] = 1.0
    assert MemN2N(2 * D, D).saturation(y) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"linear_size": D + 1},
            "linear_size must be a whole number from 0 to hidden_size=6, or null, got 7",
        ),
        ({"linear_size": -1}, "linear_size must be a whole number from 0 to hidden_size=6, or null, got -1"),
        (
            {"input_size": D},
            "needs input_size=12, twice the hidden_size, got 6: set network.embedding_size=12",
        ),
    ],
)
def test_what_it_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MemN2N(**{"input_size": 2 * D, "hidden_size": D, **arguments})


def test_a_state_without_words_is_not_asked() -> None:
    """What lies in a slot that no word has reached changes nothing."""
    cell = fill(MemN2N(2 * D, D, 2, memory_size=4), seeded(0))
    x, state = draw(seeded(1), T, B, 2 * D), cell.initial_state(B)
    noise = draw_state(cell, B, seeded(2))
    for backend, cell.linear in product(("eager", "parallel"), (False, True)):
        y, _ = scan(cell, x, state, None, backend)
        other, _ = scan(cell, x, state._replace(memory=noise.memory), None, backend)
        assert_close(other, y, rtol=1e-12, atol=1e-12)
