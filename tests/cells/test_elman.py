"""The simple recurrent network against its transcription and against torch.nn.RNN."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.base import saturation
from hornn.cells.elman import Rnn, RnnState
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.elman import rnn

T, B, INPUT, H = 7, 3, 4, 6


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_equals_the_transcription(activation: str, bias: bool) -> None:
    generator = seeded(1)
    cell = fill(Rnn(input_size=INPUT, hidden_size=H, bias=bias, activation=activation), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    expected_y, (expected_h,) = rnn(x.numpy(), as_arrays(state), ACTIVATIONS[activation], **weights_of(cell))
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_equals_torch_with_copied_weights(activation: str, bias: bool) -> None:
    generator = seeded(2)
    cell = fill(Rnn(input_size=INPUT, hidden_size=H, bias=bias, activation=activation), generator)
    theirs = torch.nn.RNN(INPUT, H, bias=bias, nonlinearity=activation, dtype=torch.float64)
    copies = {"W_in": theirs.weight_ih_l0, "W_h": theirs.weight_hh_l0}
    if bias:
        copies["b"] = theirs.bias_ih_l0
        torch.nn.init.zeros_(theirs.bias_hh_l0)
    with torch.no_grad():
        for name, parameter in copies.items():
            parameter.copy_(cell.get_parameter(name))

    x, h0 = draw(generator, T, B, INPUT).requires_grad_(), draw(generator, B, H).requires_grad_()
    y, last = scan(cell, x, type(cell.initial_state(B))(h0))
    their_y, their_h = theirs(x, h0[None])
    assert_close(y, their_y, rtol=1e-12, atol=1e-12)
    assert_close(last.h, their_h[0], rtol=1e-12, atol=1e-12)

    dy, dh = draw(generator, T, B, H), draw(generator, B, H)
    ours = torch.autograd.grad(
        (y * dy).sum() + (last.h * dh).sum(), [x, h0, *(cell.get_parameter(name) for name in copies)]
    )
    expected = torch.autograd.grad((their_y * dy).sum() + (their_h[0] * dh).sum(), [x, h0, *copies.values()])
    assert_close(ours, expected, rtol=1e-11, atol=1e-12)


def test_a_step_of_its_own_has_not_the_paths_of_the_class_above() -> None:
    class Halved(Rnn):
        def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
            return super().step(u_t / 2, state)

    class Told(Halved):
        def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
            return {"input": u_t / 2}

    x, state = torch.zeros(3, 4), RnnState(torch.zeros(3, 4))
    told = [sorted(cell(4, 4).paths(x, state)) for cell in (Rnn, Halved, Told)]
    assert told == [["input", "pooled"], [], ["input"]]


@pytest.mark.parametrize(
    ("activation", "share"), [("sigmoid", 0.5), ("tanh", 0.5), ("relu", 0.5), ("linear", 0.0)]
)
def test_both_bounds_count_as_saturated(activation: str, share: float) -> None:
    y = {"sigmoid": [0.01, 0.03, 0.97, 0.99], "relu": [0.0, 0.0, 0.1, 3.0]}
    assert saturation(torch.tensor(y.get(activation, [-0.99, -0.97, 0.97, 0.99])), activation) == share
