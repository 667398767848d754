"""The leaky integrators against their transcription and their limits."""

import math

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.leaky import LeakyRnn
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.leaky import leaky_rnn

T, B, INPUT, H = 7, 3, 4, 6


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("leak_rate", [0.05, 0.5, 1])
def test_equals_the_transcription(leak_rate: float, activation: str, bias: bool) -> None:
    generator = seeded(1)
    cell = fill(LeakyRnn(INPUT, H, leak_rate, activation, bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    expected_y, (expected_h,) = leaky_rnn(
        x.numpy(), as_arrays(state), ACTIVATIONS[activation], leak_rate, **weights_of(cell)
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


def test_without_memory_is_the_rnn() -> None:
    generator = seeded(2)
    cell = fill(LeakyRnn(INPUT, H, leak_rate=1.0), generator)
    rnn = Rnn(INPUT, H).double()
    rnn.load_state_dict(cell.state_dict())
    x, state = draw(generator, T, B, INPUT), draw_state(rnn, B, generator)
    assert_close(scan(cell, x, state), scan(rnn, x, state), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("value", [0, 0.0, -0.1, 1.5, math.nan, True, "half"])
def test_refuses_a_leak_rate_outside_its_interval(value: object) -> None:
    with pytest.raises(ValueError, match=f"leak_rate must be a number above 0 and at most 1, got {value!r}"):
        LeakyRnn(INPUT, H, leak_rate=value)  # type: ignore[arg-type]
