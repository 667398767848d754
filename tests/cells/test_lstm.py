"""The LSTM against its transcription and against torch.nn.LSTM."""

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.lstm import Lstm
from hornn.scan import scan
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.lstm import lstm

T, B, INPUT, H = 7, 3, 4, 6


@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_transcription(bias: bool) -> None:
    generator = seeded(1)
    cell = fill(Lstm(input_size=INPUT, hidden_size=H, bias=bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    expected_y, (expected_h, expected_c) = lstm(x.numpy(), as_arrays((state.h, state.c)), **weights_of(cell))
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)
    assert_close(last.c, torch.from_numpy(expected_c), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_equals_torch_with_copied_weights(bias: bool) -> None:
    generator = seeded(2)
    cell = fill(Lstm(input_size=INPUT, hidden_size=H, bias=bias), generator)
    theirs = torch.nn.LSTM(INPUT, H, bias=bias, dtype=torch.float64)
    copies = {"W_in": theirs.weight_ih_l0, "W_h": theirs.weight_hh_l0}
    if bias:
        copies["b"] = theirs.bias_ih_l0
        torch.nn.init.zeros_(theirs.bias_hh_l0)
    with torch.no_grad():
        for name, parameter in copies.items():
            parameter.copy_(cell.get_parameter(name))

    x = draw(generator, T, B, INPUT).requires_grad_()
    h0, c0 = (draw(generator, B, H).requires_grad_() for _ in range(2))
    y, last = scan(cell, x, type(cell.initial_state(B))(h=h0, c=c0))
    their_y, (their_h, their_c) = theirs(x, (h0[None], c0[None]))
    assert_close(y, their_y, rtol=1e-12, atol=1e-12)
    assert_close(last.h, their_h[0], rtol=1e-12, atol=1e-12)
    assert_close(last.c, their_c[0], rtol=1e-12, atol=1e-12)

    dy, dh, dc = draw(generator, T, B, H), draw(generator, B, H), draw(generator, B, H)
    ours = torch.autograd.grad(
        (y * dy).sum() + (last.h * dh).sum() + (last.c * dc).sum(),
        [x, h0, c0, *(cell.get_parameter(name) for name in copies)],
    )
    expected = torch.autograd.grad(
        (their_y * dy).sum() + (their_h[0] * dh).sum() + (their_c[0] * dc).sum(),
        [x, h0, c0, *copies.values()],
    )
    assert_close(ours, expected, rtol=1e-11, atol=1e-12)


def test_keeps_its_content_with_the_input_gate_shut_and_the_forget_gate_open() -> None:
    generator = seeded(3)
    cell = fill(Lstm(input_size=INPUT, hidden_size=H, bias=True), generator)
    with torch.no_grad():
        cell.b[:H] = -1000.0
        cell.b[H : 2 * H] = 1000.0
    state = draw_state(cell, B, generator)
    _, last = scan(cell, draw(generator, T, B, INPUT), state)
    assert_close(last.c, state.c, rtol=0, atol=0)
