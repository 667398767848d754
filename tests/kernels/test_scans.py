"""The native time loops against the loop over `step` in float64."""

import math
import re
from copy import deepcopy
from itertools import count
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from hornn.cells.base import Cell
from hornn.cells.elman import Rnn, RnnState
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn, HornnState, MaxHornn
from hornn.kernels.scans import NativeGru, NativeLeak, NativeLstm, NativeScan
from hornn.scan import scan
from kernels.tolerance import SCAN_ERROR, error, needs_compiler

CELLS: dict[str, type[Cell]] = {
    "rnn": Rnn,
    "hornn": Hornn,
    "hornn_max": MaxHornn,
    "hornn_fofe": FofeHornn,
    "hornn_gated": GatedHornn,
}


class Problem(NamedTuple):
    cell: Any
    u: Tensor  # (T, B, G)
    history: Tensor  # (K, B, H)
    to_y: Tensor  # cotangents
    to_last: Tensor


def draw(kind: str, order: int, activation: str, T: int, B: int, H: int, seed: int) -> Problem:
    """A random scan. The matrices shrink with the order, or the recurrence would itself enlarge rounding errors."""
    torch.manual_seed(seed)
    if kind == "rnn":
        cell = CELLS[kind](3, H, activation=activation)
    else:
        cell = CELLS[kind](3, H, order=order, activation=activation)
    for weight in cell.recurrent_weights():
        weight.data *= 5 / (order * math.sqrt(H))
    G = cell.project_input(torch.zeros(1, 1, 3)).size(-1)
    history = torch.rand(order, B, H)
    return Problem(cell, torch.randn(T, B, G), history, torch.randn(T, B, H), torch.randn(order, B, H))


def differentiate(p: Problem, y: Tensor, last: Tensor, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """All results of a scan by name: outputs, last states, gradients."""
    objective = (y * p.to_y).sum() + (last * p.to_last).sum()
    gradients = torch.autograd.grad(objective, list(inputs.values()))
    return {"y": y.detach(), "last": last.detach(), **dict(zip(inputs, gradients, strict=True))}


def run_eager(p: Problem) -> tuple[dict[str, Tensor], float]:
    """The loop over `step` in float64, and how near it came to a jump of its own gradient.

    The gradient of max and of relu jumps where two taps are equal or the argument is 0. Closer to it than fp32
    resolves, fp32 and float64 may lie on different sides, and both be right.
    """
    cell = deepcopy(p.cell).double()
    u, history = (tensor.double().requires_grad_() for tensor in (p.u, p.history))
    cell.project_input = lambda u: u
    f, gaps = cell.f, [math.inf]

    def watched_f(z: Tensor) -> Tensor:
        if cell.activation == "relu":
            gaps.append(float(z.detach().abs().min()))
        return f(z)

    cell.f = watched_f
    if isinstance(cell, MaxHornn) and cell.order > 1:
        taps = cell.taps

        def watched_taps(history: Tensor) -> Tensor:
            most, second = taps(history).detach().topk(2, dim=0).values
            gaps.append(float((most - second).min()))
            return taps(history)

        cell.taps = watched_taps
    state = RnnState(history[0]) if isinstance(cell, Rnn) else HornnState(history)
    y, (last,) = scan(cell, u, state)
    inputs = {"u": u, "history": history, **dict(zip(("W_h", "W_g2"), weights(cell), strict=False))}
    return differentiate(p, y, last.view_as(history), inputs), min(gaps)


def weights(cell: Any) -> list[Tensor]:
    return [cell.W_h, cell.W_g2] if isinstance(cell, GatedHornn) else [cell.W_h]


def apply_native(
    p: Problem, u: Tensor, history: Tensor, kind: type[NativeScan] = NativeScan
) -> tuple[Tensor, Tensor]:
    cell, W_h, W_g2, factors = p.cell, p.cell.W_h, None, None
    pooling = "sum"
    if isinstance(cell, Rnn):
        W_h = W_h.unsqueeze(0)
    elif isinstance(cell, FofeHornn):
        factors = torch.tensor([cell.alpha**n for n in range(1, cell.order + 1)])
    elif isinstance(cell, MaxHornn):
        pooling = "max"
    elif isinstance(cell, GatedHornn):
        pooling, W_g2 = "gated", cell.W_g2
    return kind.apply(u, history, W_h, W_g2, pooling, cell.activation, factors=factors)


def run_native(p: Problem, kind: type[NativeScan] = NativeScan) -> dict[str, Tensor]:
    u, history = (tensor.clone().requires_grad_() for tensor in (p.u, p.history))
    y, last = apply_native(p, u, history, kind)
    inputs = {"u": u, "history": history, **dict(zip(("W_h", "W_g2"), weights(p.cell), strict=False))}
    return differentiate(p, y, last, inputs)


def draw_smooth(
    kind: str, order: int, activation: str, T: int, B: int, H: int
) -> tuple[Problem, dict[str, Tensor]]:
    """The first random scan that keeps clear of the jumps, with its results in float64."""
    for seed in count():
        p = draw(kind, order, activation, T, B, H, seed)
        expected, gap = run_eager(p)
        if gap > 1e-5:
            return p, expected
    raise AssertionError("count() does not end")


def check(p: Problem, expected: dict[str, Tensor], kind: type[NativeScan] = NativeScan) -> None:
    found = run_native(p, kind)
    assert found.keys() == expected.keys()
    errors = {name: error(found[name], expected[name]) for name in expected}
    assert max(errors.values()) < SCAN_ERROR, errors


KINDS_AND_ORDERS = [("rnn", 1), *((kind, n) for kind in list(CELLS)[1:] for n in (1, 2, 3, 4, 8))]


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu"])
@pytest.mark.parametrize(("kind", "order"), KINDS_AND_ORDERS)
def test_the_scan_is_the_loop(kernels: None, kind: str, order: int, activation: str) -> None:
    check(*draw_smooth(kind, order, activation, T=31, B=3, H=50))


@pytest.mark.parametrize(
    ("T", "B", "H"), [(1, 1, 1), (1, 3, 50), (2, 3, 16), (31, 1, 50), (5, 7, 17), (9, 26, 33)]
)
@pytest.mark.parametrize(
    ("kind", "order"), [("rnn", 1), ("hornn_fofe", 3), ("hornn_max", 3), ("hornn_gated", 3)]
)
def test_the_scan_is_the_loop_at_odd_sizes(
    kernels: None, kind: str, order: int, T: int, B: int, H: int
) -> None:
    check(*draw_smooth(kind, order, "tanh", T, B, H))


@pytest.mark.parametrize("kind", CELLS)
def test_the_scan_does_not_depend_on_the_number_of_threads(kernels: None, kind: str) -> None:
    """Sizes at which two threads share the work; an odd number of panels of columns, several blocks of rows."""
    order = 1 if kind == "rnn" else 3
    p, expected = draw_smooth(kind, order, "sigmoid", T=6, B=21, H=130)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        check(p, expected)
        found.append(run_native(p))
    assert all(torch.equal(found[0][name], found[1][name]) for name in expected)


@pytest.mark.parametrize("order", [2, 3, 6])
@pytest.mark.parametrize("kind", ["hornn_fofe", "hornn_max", "hornn_gated"])
def test_one_column_in_pieces(kernels: None, kind: str, order: int) -> None:
    """With one column, products are computed for several steps at once: the loop still, wherever a chunk ends."""
    p, expected = draw_smooth(kind, order, "tanh", T=13, B=1, H=330)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        check(p, expected)
    whole, last = apply_native(p, p.u, p.history)
    pieces, history = [], p.history
    for part in p.u.split((1, 5, 3, 4)):
        y, history = apply_native(p, part, history)
        pieces.append(y)
    assert torch.equal(torch.cat(pieces), whole)
    assert torch.equal(history, last)


@pytest.mark.parametrize("kind", CELLS)
def test_equal_taps_and_zero_history(kernels: None, kind: str) -> None:
    """Where every tap is 0 the first one wins, as in `torch.max`."""
    order = 1 if kind == "rnn" else 3
    p = draw(kind, order, "sigmoid", T=4, B=3, H=20, seed=0)
    p = p._replace(history=torch.zeros_like(p.history))
    check(p, run_eager(p)[0])


def test_factors_need_not_lie_side_by_side(kernels: None) -> None:
    u, history, W_h = torch.randn(4, 3, 20), torch.zeros(2, 3, 20), torch.randn(2, 20, 20)
    factors = torch.tensor([0.6, 99.0, 0.36, 99.0])[::2]
    strided, dense = (
        NativeScan.apply(u, history, W_h, None, "sum", "tanh", factors=each)[0]
        for each in (factors, factors.contiguous())
    )
    assert torch.equal(strided, dense)


@pytest.mark.parametrize("kind", CELLS)
def test_what_needs_no_gradient_gets_none(kernels: None, kind: str) -> None:
    order = 1 if kind == "rnn" else 3
    p = draw(kind, order, "sigmoid", T=5, B=3, H=20, seed=0)
    everything = run_native(p)
    y, last = apply_native(p, p.u, p.history)
    ((y * p.to_y).sum() + (last * p.to_last).sum()).backward()
    for name, weight in zip(("W_h", "W_g2"), weights(p.cell), strict=False):
        assert torch.equal(weight.grad, everything[name])
    with torch.no_grad():
        y, last = apply_native(p, p.u, p.history)
    assert y.grad_fn is None
    assert torch.equal(y, everything["y"])
    assert torch.equal(last, everything["last"])
    for weight in weights(p.cell):
        weight.requires_grad_(False)
    u = p.u.clone().requires_grad_()
    y, last = apply_native(p, u, p.history)
    ((y * p.to_y).sum() + (last * p.to_last).sum()).backward()
    assert torch.equal(u.grad, everything["u"])


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu"])
def test_a_nan_goes_through(kernels: None, kind: str, activation: str) -> None:
    p = draw(kind, 1 if kind == "rnn" else 3, activation, T=4, B=2, H=20, seed=0)
    p.u[1, 0, 5] = math.nan
    y, _ = apply_native(p, p.u, p.history)
    assert torch.equal(y.isnan(), run_eager(p)[0]["y"].isnan())
    assert y[2:, 0].isnan().all()


def test_far_arguments_saturate(kernels: None) -> None:
    u = torch.tensor([-math.inf, -1e4, -90.0, -20.0, -1e-4, 0.0, 1e-30, 1e-4, 20.0, 90.0, 1e4, math.inf])
    for activation in ("sigmoid", "tanh", "relu"):
        zeros = torch.zeros(1, 1, len(u))
        y, _ = NativeScan.apply(u.view(1, 1, -1), zeros, zeros.mT @ zeros, None, "sum", activation)
        expected = getattr(torch, activation)(u.double())
        torch.testing.assert_close(y.view(-1).double(), expected, rtol=5e-7, atol=1e-37)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 80), (3, 20), (3, 20), (80, 21)), "'W_h': (80, 21)"),
        (((2, 3, 60), (3, 20), (3, 20), (80, 20)), "'u': (2, 3, 60)"),
        (((0, 3, 80), (3, 20), (3, 20), (80, 20)), "all sizes >= 1"),
        (((2, 3, 80), (1, 3, 20), (3, 20), (80, 20)), "'r': (1, 3, 20)"),
        (((2, 3, 80), (3, 20), (3, 20), (80, 20), (9, 20)), "'P': (9, 20)"),
        (((2, 3, 80), (3, 9), (3, 20), (80, 9), (9, 19)), "'P': (9, 19)"),
        (((2, 3, 80), (3, 0), (3, 20), (80, 0), (0, 20)), "all sizes >= 1"),
    ],
)
def test_the_lstm_refuses(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        NativeLstm.apply(*map(torch.zeros, shapes))
    with pytest.raises(ValueError, match="fp32 on the CPU"):
        NativeLstm.apply(*(torch.zeros(shape).double() for shape in shapes))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 60), (3, 20), (60, 21), (20,)), "'W_h': (60, 21)"),
        (((2, 3, 80), (3, 20), (60, 20), (20,)), "'u': (2, 3, 80)"),
        (((0, 3, 60), (3, 20), (60, 20), (20,)), "all sizes >= 1"),
        (((2, 3, 60), (3, 20), (60, 20), (19,)), "'b_n': (19,)"),
    ],
)
def test_the_gru_refuses(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        NativeGru.apply(*map(torch.zeros, shapes))
    with pytest.raises(ValueError, match="fp32 on the CPU"):
        NativeGru.apply(*(torch.zeros(shape).double() for shape in shapes))
    with pytest.raises(ValueError, match="none without reset_after"):
        NativeGru.apply(
            torch.zeros(2, 3, 60), torch.zeros(3, 20), torch.zeros(60, 20), torch.zeros(20), False
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"u": torch.zeros(2, 3, 4, dtype=torch.float64)},
            "float64 on cpu for u: set network.backend=eager",
        ),
        ({"W_h": torch.zeros(2, 4, 4, device="meta")}, "on meta for W_h"),
        ({"history": torch.zeros(3, 3, 4)}, r"'history': \(3, 3, 4\)"),
        ({"u": torch.zeros(0, 3, 4)}, r"'u': \(0, 3, 4\)"),
        ({"W_g2": torch.zeros(2, 4, 4)}, "sum pooling with"),
        ({"factors": torch.zeros(3)}, r"'factors': \(3,\)"),
        ({"pooling": "gated"}, "gated pooling with"),
        ({"pooling": "mean"}, "pooling must be one of sum, max, gated, got 'mean'"),
        ({"activation": "gelu"}, "activation must be one of sigmoid, tanh, relu, got 'gelu'"),
        ({"max_norm": 1.0}, "bounds the gradient of one state, with sum pooling, got sum of 2"),
    ],
)
def test_the_scan_refuses(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "u": torch.zeros(2, 3, 4),
        "history": torch.zeros(2, 3, 4),
        "W_h": torch.zeros(2, 4, 4),
        "W_g2": None,
        "pooling": "sum",
        "activation": "tanh",
    }
    with pytest.raises(ValueError, match=message):
        NativeScan.apply(**(arguments | change))


@needs_compiler
@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (3, 5), (4,)), ((2, 3, 4), (3, 4), (5,)), ((0, 3, 4), (3, 4), (4,))]
)
def test_the_leak_refuses(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match=r"a native leak takes b \(T, B, C\), s \(B, C\) and kept \(C\)"):
        NativeLeak.apply(*map(torch.zeros, shapes))
