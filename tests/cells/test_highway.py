"""The highway transition against its transcription and its limits."""

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.highway import HighwayRnn
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.highway import highway_rnn

T, B, INPUT, H = 7, 3, 4, 6


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("depth", [1, 3])
def test_equals_the_transcription(depth: int, activation: str, bias: bool) -> None:
    generator = seeded(1)
    cell = fill(HighwayRnn(INPUT, H, depth, -0.7, activation, bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    expected_y, (expected_h,) = highway_rnn(
        x.numpy(), as_arrays(state), ACTIVATIONS[activation], -0.7, **weights_of(cell)
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


def test_with_open_gates_is_the_rnn() -> None:
    generator = seeded(2)
    cell = fill(HighwayRnn(INPUT, H, gate_bias=1000), generator)
    rnn = Rnn(INPUT, H).double()
    rnn.load_state_dict({"W_in": cell.W_in[:H], "W_h": cell.W_h[0, :H]})
    x, state = draw(generator, T, B, INPUT), draw_state(rnn, B, generator)
    assert_close(scan(cell, x, state), scan(rnn, x, state), rtol=1e-12, atol=1e-12)


def test_with_closed_gates_keeps_its_state() -> None:
    generator = seeded(3)
    cell = fill(HighwayRnn(INPUT, H, depth=2, gate_bias=-1000.0), generator)
    state = draw_state(cell, B, generator)
    y, last = scan(cell, draw(generator, T, B, INPUT), state)
    assert_close(last, state, rtol=0, atol=0)
    assert_close(y, state.h.expand(T, B, H), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gate_bias": "open"}, "gate_bias must be a number, such as -1, got 'open'"),
        ({"gate_bias": True}, "gate_bias must be a number, such as -1, got True"),
    ],
)
def test_refuses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HighwayRnn(INPUT, H, **arguments)  # type: ignore[arg-type]
