"""The native loop of layers against the loop over `step` in float64, for deep transitions; what it refuses."""

import math
import re
from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from hornn.cells.deep import DeepRnn, DeepRnnState
from hornn.kernels.layers import NativeLayers, Tap
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
    with torch.no_grad():
        y, _ = scan(cell, u, DeepRnnState(h), backend="native")
    assert y[1:, 0].isnan().all()
    assert not y[:, 1:].isnan().any()
    assert not y[0].isnan().any()


@pytest.mark.parametrize(
    "change",
    [
        {"u": torch.zeros(2, 3, 8)},
        {"u": torch.zeros(0, 3, 9)},
        {"histories": [torch.zeros(0, 3, 5), torch.zeros(1, 2, 4)]},
        {"histories": [torch.zeros(0, 3, 5), torch.zeros(0, 3, 4)]},
        {"weights": [torch.zeros(5, 4), torch.zeros(4, 6)]},
        {"weights": [torch.zeros(5, 4)]},
        {"taps": [Tap(0, 1, 2), Tap(1, 0, 0)]},
        {"taps": [Tap(0, 1, 1)]},
        {"taps": [Tap(0, 1, 0), Tap(1, 0, 0)]},
        {"taps": [Tap(0, 1, 1), Tap(2, 0, 0)]},
        {"activations": ["tanh"]},
        {"fed": [True, False]},
    ],
)
def test_what_does_not_fit(change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {
        "u": torch.zeros(2, 3, 9),
        "histories": [torch.zeros(0, 3, 5), torch.zeros(1, 3, 4)],
        "weights": [torch.zeros(5, 4), torch.zeros(4, 5)],
        "taps": [Tap(0, 1, 1), Tap(1, 0, 0)],
        "activations": ["tanh", "linear"],
        "fed": [True, True],
    }
    with pytest.raises(ValueError, match="native layers take u"):
        NativeLayers.apply(**(arguments | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u": torch.zeros(2, 3, 4).double()}, "float64 on cpu for u"),
        ({"activations": ["lp"]}, "activation must be one of sigmoid, tanh, relu, linear"),
        ({"max_norm": 1.0}, "the gradient of one state"),
    ],
)
def test_the_layers_refuse(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "u": torch.zeros(2, 3, 4),
        "histories": [torch.zeros(2, 3, 4)],
        "weights": [torch.zeros(4, 4)],
        "taps": [Tap(0, 0, 2)],
        "activations": ["tanh"],
        "fed": [True],
    }
    with pytest.raises(ValueError, match=re.escape(message)):
        NativeLayers.apply(**(arguments | change))
