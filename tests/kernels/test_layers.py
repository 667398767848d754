"""The native loop of layers against the loop over `step` in float64, for deep transitions; what it refuses."""

import math
import re
from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.deep import DeepRnn
from hornn.cells.elman import RnnState
from hornn.kernels.layers import NativeLayers, Pool, Tap
from hornn.scan import scan
from kernels.tolerance import SCAN_ERROR, error

T, B, H, N = 31, 3, 50, 37
ACTIVATIONS = ("sigmoid", "tanh", "relu")


def draw(transition: str, state: str, shortcuts: bool, **given: Any) -> tuple[DeepRnn, Tensor, Tensor]:
    """A cell, its u (T, B, G) and its first state."""
    torch.manual_seed(3)
    sizes = [(N, transition)] * (given.get("transition_depth", 2) - 1) + [(H, state)]
    G = sum(size * (given.get("pieces", 2) if units in ("maxout", "lp") else 1) for size, units in sizes)
    cell = DeepRnn(
        G,
        H,
        transition_size=N,
        shortcuts=shortcuts,
        embedded_input=True,
        transition_activation=transition,
        state_activation=state,
        **given,
    )
    for weight in cell.recurrent_weights():
        weight.data *= 2 / math.sqrt(H)  # or relu would itself enlarge rounding errors
    return cell, torch.randn(T, B, G), torch.rand(B, H)


def run(cell: DeepRnn, u: Tensor, h: Tensor, backend: str) -> dict[str, Tensor]:
    """All results of a scan by name: outputs, last state, gradients under random cotangents."""
    u, h = u.clone().requires_grad_(), h.clone().requires_grad_()
    y, (last,) = scan(cell, u, RnnState(h), backend=backend)
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


POOLED = {
    "maxout": ("maxout", "tanh", {"pieces": 3}),
    "one order": ("lp", "sigmoid", {"p": 3.0}),
    "the least order": ("lp", "sigmoid", {"p": 1.0}),
    "learned orders": ("lp", "sigmoid", {"learn_p": True, "pieces": 3, "bias": True}),
    "pooled states": ("tanh", "lp", {"learn_p": True}),
    "both": ("maxout", "lp", {"learn_p": True}),
}


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("name", POOLED)
def test_pooled_pieces_are_the_loop(kernels: None, name: str, shortcuts: bool) -> None:
    transition, state, given = POOLED[name]
    cell, u, h = draw(transition, state, shortcuts, **given)
    for key, parameter in cell.named_parameters():
        if key.endswith("b_p"):
            parameter.data = torch.randn_like(parameter)  # every unit has an order of its own
    expected = run(deepcopy(cell).double(), u.double(), h.double(), "eager")
    found = run(cell, u, h, "native")
    errors = {key: error(found[key], expected[key]) for key in expected}
    assert max(errors.values()) < SCAN_ERROR, errors


@pytest.mark.parametrize(
    ("transition", "state"), [("sigmoid", "tanh"), ("lp", "sigmoid"), ("maxout", "tanh")]
)
def test_dropped_units_are_those_of_the_loop(kernels: None, transition: str, state: str) -> None:
    """The same masks, though two layers draw at each step; a network that is evaluated drops none."""
    found = []
    for backend in ("eager", "native"):
        cell, u, h = draw(transition, state, False, transition_dropout=0.4, transition_depth=3)
        torch.manual_seed(5)
        found.append(run(cell, u, h, backend))
        cell.eval()
        with torch.no_grad():
            found[-1]["without"] = scan(cell, u, RnnState(h), backend=backend)[0]
    errors = {key: error(found[1][key], found[0][key]) for key in found[0]}
    assert max(errors.values()) < SCAN_ERROR, errors
    assert not torch.equal(found[1]["y"], found[1]["without"])


def test_pieces_of_zeros_have_no_slope(kernels: None) -> None:
    """An L_p norm has none there, and 0 is taken; of equal pieces one gets the gradient."""
    for transition, total in (("lp", 0.0), ("maxout", 1.0)):
        cell, u, h = draw(transition, "relu", False)
        cell.plus[0].W.data.zero_()
        cell.plus[1].W.data.fill_(1.0)
        u = torch.ones_like(u[:1])
        u[..., : 2 * N] = 0
        u.requires_grad_()
        y, _ = scan(cell, u, RnnState(h), backend="native")
        y[0, 0, 0].backward()
        assert u.grad is not None
        pieces = u.grad[0, 0, : 2 * N].view(2, N)
        assert torch.equal(pieces.sum(0), torch.full((N,), total))


def test_a_layer_that_hears_nothing_and_is_not_heard(kernels: None) -> None:
    u = torch.randn(3, 2, 4, requires_grad=True)
    y, last = NativeLayers.apply(u, [torch.empty(0, 2, 4)], [], [], ["tanh"], [True])
    assert_close(y, u.tanh())
    assert last.shape == (0, 2, 4)
    (gradient,) = torch.autograd.grad(y.square().sum(), u)
    assert_close(gradient, 2 * u.tanh() * (1 - u.tanh().square()))


def test_what_needs_no_gradient_gets_none(kernels: None) -> None:
    cell, u, h = draw("tanh", "sigmoid", True)
    everything = run(cell, u, h, "native")
    with torch.no_grad():
        y, (last,) = scan(cell, u, RnnState(h), backend="native")
    assert torch.equal(y, everything["y"])
    assert torch.equal(last, everything["last"])
    frozen, *learned = cell.parameters()
    frozen.requires_grad_(False)
    y, _ = scan(cell, u, RnnState(h), backend="native")
    y.sum().backward()
    assert frozen.grad is None
    assert all(weight.grad is not None for weight in learned)


@pytest.mark.parametrize(
    ("transition", "state"), [("tanh", "relu"), ("lp", "sigmoid"), ("maxout", "sigmoid")]
)
def test_a_nan_goes_through(kernels: None, transition: str, state: str) -> None:
    cell, u, h = draw(transition, state, False)
    u[1, 0, 5] = math.nan
    with torch.no_grad():
        y, _ = scan(cell, u, RnnState(h), backend="native")
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
        {"weights": [torch.zeros(5, 4)], "pools": [Pool(2)]},
        {"weights": [torch.zeros(5, 4)], "pools": [Pool(0)]},
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
    "pool",
    [Pool(3), Pool(2, torch.ones(3)), Pool(2, None, torch.ones(2, 3, 2)), Pool(2, None, torch.ones(1, 3, 4))],
)
def test_a_pool_that_does_not_fit(pool: Pool) -> None:
    with pytest.raises(ValueError, match="a pool of pieces"):
        NativeLayers.apply(
            torch.zeros(2, 3, 8),
            [torch.zeros(0, 3, 8), torch.zeros(1, 3, 4)],
            [torch.zeros(8, 4)],
            [Tap(0, 1, 1), Tap(1, 0, 0)],
            ["linear", "linear"],
            [True, False],
            pools=[pool],
        )


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
