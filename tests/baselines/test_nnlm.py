"""The feed-forward model against its transcription, and what it can and cannot see."""

import pytest
import torch
from torch.testing import assert_close

from hornn.baselines.nnlm import Nnlm
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.nnlm import nnlm

T, B, INPUT, H = 9, 3, 4, 6


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize(
    ("activation", "direct", "bias"), [("tanh", False, True), ("tanh", True, True), ("relu", True, False)]
)
@pytest.mark.parametrize("backend", ["eager", "parallel"])
def test_it_equals_the_transcription(
    order: int, activation: str, direct: bool, bias: bool, backend: str
) -> None:
    generator = seeded(1)
    cell = fill(Nnlm(INPUT, H, order, activation, direct, bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, last = scan(cell, x, state, None, backend)
    expected_y, (expected_words,) = nnlm(
        x.numpy(), as_arrays(state), ACTIVATIONS[activation], **weights_of(cell), direct=direct
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.words, torch.from_numpy(expected_words), rtol=0, atol=0)


@pytest.mark.parametrize("order", [2, 4])
def test_it_sees_the_last_words_and_no_more(order: int) -> None:
    cell = fill(Nnlm(INPUT, H, order), seeded(0))
    x = draw(seeded(1), T, B, INPUT)
    changed = x.clone()
    changed[3] += 1.0
    y, other = (scan(cell, inputs, cell.initial_state(B))[0] for inputs in (x, changed))
    moved = [bool((y[t] != other[t]).any()) for t in range(T)]
    assert moved == [3 <= t <= 3 + order - 2 for t in range(T)]


def test_saturation_is_that_of_the_hidden_units() -> None:
    cell = fill(Nnlm(INPUT, H, direct=True), seeded(0))
    y = torch.zeros(2, B, cell.output_size)
    y[..., H:] = 5.0
    assert cell.output_size == H + 4 * INPUT
    assert cell.saturation(y) == 0.0
    y[..., :H] = 1.0
    assert cell.saturation(y) == 1.0
