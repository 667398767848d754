"""The native loop of deep transitions against the loop over `step` in float64."""

import math
import re
from copy import deepcopy
from itertools import product

import pytest
import torch
from torch import Tensor

from hornn.cells.deep import DeepRnn, DeepRnnState
from hornn.kernels.scans import NativeTransition
from hornn.scan import scan
from kernels.tolerance import SCAN_ERROR, error

T, B, H, N = 31, 3, 50, 37
ACTIVATIONS = ("sigmoid", "tanh", "relu")


def draw(transition: str, state: str, shortcuts: bool) -> tuple[DeepRnn, Tensor, Tensor]:
    """A cell, its u (T, B, G) and its first state."""
    torch.manual_seed(3)
    cell = DeepRnn(
        N + H,
        H,
        transition_size=N,
        shortcuts=shortcuts,
        embedded_input=True,
        transition_activation=transition,
        state_activation=state,
    )
    for weight in cell.recurrent_weights():
        weight.data *= 2 / math.sqrt(H)  # or relu would itself enlarge rounding errors
    return cell, torch.randn(T, B, N + H), torch.rand(B, H)


def run(cell: DeepRnn, u: Tensor, h: Tensor, backend: str) -> dict[str, Tensor]:
    """All results of a scan by name: outputs, last state, gradients under random cotangents."""
    u, h = u.clone().requires_grad_(), h.clone().requires_grad_()
    y, (last,) = scan(cell, u, DeepRnnState(h), backend=backend)
    torch.manual_seed(4)
    to_y, to_last = torch.randn(T, B, H), torch.randn(B, H)
    inputs = {"u": u, "h": h, **dict(cell.named_parameters())}
    gradients = torch.autograd.grad((y * to_y).sum() + (last * to_last).sum(), list(inputs.values()))
    return {"y": y.detach(), "last": last.detach(), **dict(zip(inputs, gradients, strict=True))}


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize(("transition", "state"), [*product(ACTIVATIONS, ACTIVATIONS)])
def test_the_scan_is_the_loop(kernels: None, transition: str, state: str, shortcuts: bool) -> None:
    cell, u, h = draw(transition, state, shortcuts)
    expected = run(deepcopy(cell).double(), u.double(), h.double(), "eager")
    found = run(cell, u, h, "native")
    errors = {name: error(found[name], expected[name]) for name in expected}
    assert max(errors.values()) < SCAN_ERROR, errors


def test_what_needs_no_gradient_gets_none(kernels: None) -> None:
    cell, u, h = draw("tanh", "sigmoid", True)
    everything = run(cell, u, h, "native")
    with torch.no_grad():
        y, (last,) = scan(cell, u, DeepRnnState(h), backend="native")
    assert torch.equal(y, everything["y"])
    assert torch.equal(last, everything["last"])
    frozen, *learned = cell.parameters()
    frozen.requires_grad_(False)
    y, _ = scan(cell, u, DeepRnnState(h), backend="native")
    y.sum().backward()
    assert frozen.grad is None
    assert all(weight.grad is not None for weight in learned)


def test_a_nan_goes_through(kernels: None) -> None:
    cell, u, h = draw("tanh", "relu", False)
    u[1, 0, 5] = math.nan
    y = NativeTransition.apply(u, h, [layer.W for layer in cell.plus], [], ["tanh", "relu"])[0]
    assert y[1:, 0].isnan().all()
    assert not y[:, 1:].isnan().any()
    assert not y[0].isnan().any()


@pytest.mark.parametrize(
    ("shapes", "activations", "message"),
    [
        (((2, 3, 9), (3, 4), (5, 4), (4, 6), (4, 4)), ["tanh"] * 2, "'W_2': (4, 6)"),
        (((2, 3, 9), (3, 4), (5, 4), (4, 5), (5, 4)), ["tanh"] * 2, "'S_2': (5, 4)"),
        (((2, 3, 8), (3, 4), (5, 4), (4, 5), (4, 4)), ["tanh"] * 2, "'u': (2, 3, 8)"),
        (((2, 3, 10), (3, 4), (5, 4), (5, 5), (5, 4)), ["tanh"] * 2, "from H units to H units"),
        (((0, 3, 9), (3, 4), (5, 4), (4, 5), (4, 4)), ["tanh"] * 2, "all sizes >= 1"),
        (((2, 3, 9), (3, 4), (5, 4), (4, 5), (4, 4)), ["tanh"], "with tanh"),
        (((2, 3, 9), (3, 4), (5, 4), (4, 5), (4, 4)), ["tanh", "lp"], "activation must be one of sigmoid"),
    ],
)
def test_the_transition_refuses(
    shapes: tuple[tuple[int, ...], ...], activations: list[str], message: str
) -> None:
    u, h, W_1, W_2, S_2 = map(torch.zeros, shapes)
    with pytest.raises(ValueError, match=re.escape(message)):
        NativeTransition.apply(u, h, [W_1, W_2], [S_2], activations)
    with pytest.raises(ValueError, match="fp32 on the CPU"):
        NativeTransition.apply(u.double(), h, [W_1, W_2], [S_2], ["tanh", "tanh"])
