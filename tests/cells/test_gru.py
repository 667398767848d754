"""The GRU against its transcription and against torch.nn.GRU."""

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.gru import Gru
from hornn.scan import scan
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.gru import gru

T, B, INPUT, H = 7, 3, 4, 6


@pytest.mark.parametrize("reset_after", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_transcription(bias: bool, reset_after: bool) -> None:
    generator = seeded(1)
    cell = fill(Gru(input_size=INPUT, hidden_size=H, bias=bias, reset_after=reset_after), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    expected_y, (expected_h,) = gru(x.numpy(), as_arrays(state), **weights_of(cell), reset_after=reset_after)
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_equals_torch_with_copied_weights(bias: bool) -> None:
    generator = seeded(2)
    cell = fill(Gru(input_size=INPUT, hidden_size=H, bias=bias), generator)
    theirs = torch.nn.GRU(INPUT, H, bias=bias, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(cell.W_in)
        theirs.weight_hh_l0.copy_(cell.W_h)
        if bias:
            theirs.bias_ih_l0.copy_(cell.b)
            theirs.bias_hh_l0.zero_()
            theirs.bias_hh_l0[2 * H :] = cell.b_n

    x, h0 = draw(generator, T, B, INPUT).requires_grad_(), draw(generator, B, H).requires_grad_()
    y, last = scan(cell, x, type(cell.initial_state(B))(h0))
    their_y, their_h = theirs(x, h0[None])
    assert_close(y, their_y, rtol=1e-12, atol=1e-12)
    assert_close(last.h, their_h[0], rtol=1e-12, atol=1e-12)

    dy, dh = draw(generator, T, B, H), draw(generator, B, H)
    ((y * dy).sum() + (last.h * dh).sum()).backward()
    ours = [x.grad, h0.grad, cell.W_in.grad, cell.W_h.grad]
    x.grad = h0.grad = None
    ((their_y * dy).sum() + (their_h[0] * dh).sum()).backward()
    expected = [x.grad, h0.grad, theirs.weight_ih_l0.grad, theirs.weight_hh_l0.grad]
    if bias:
        ours += [cell.b.grad, cell.b_n.grad]
        expected += [theirs.bias_ih_l0.grad, theirs.bias_hh_l0.grad[2 * H :]]
    assert_close(ours, expected, rtol=1e-11, atol=1e-12)


def test_keeps_its_state_with_the_update_gate_at_one() -> None:
    generator = seeded(3)
    cell = fill(Gru(input_size=INPUT, hidden_size=H, bias=True), generator)
    with torch.no_grad():
        cell.b[H : 2 * H] = 1000.0
    state = draw_state(cell, B, generator)
    _, last = scan(cell, draw(generator, T, B, INPUT), state)
    assert_close(last.h, state.h, rtol=0, atol=0)
