"""The native kernels against the readable code in float64, and the ways in which building them can go wrong."""

import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from hornn.cells.base import Cell
from hornn.cells.elman import Rnn, RnnState
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn, HornnState, MaxHornn
from hornn.cells.lstm import Lstm
from hornn.cells.scrn import Scrn, Srn
from hornn.kernels import native
from hornn.optim import MomentumSGD
from hornn.scan import choose_backend, scan

CELLS: dict[str, type[Cell]] = {
    "rnn": Rnn,
    "hornn": Hornn,
    "hornn_max": MaxHornn,
    "hornn_fofe": FofeHornn,
    "hornn_gated": GatedHornn,
}
OTHER_PROCESSORS = {"portable": ("-O3", "-fopenmp"), "avx2": ("-O3", "-march=haswell", "-fopenmp")}
NO_COMPILER = shutil.which(os.environ.get("CXX", "c++")) is None
needs_compiler = pytest.mark.skipif(NO_COMPILER, reason="needs a C++ compiler: CXX, or c++ on the PATH")

# A sum of n rounded products is off by about sqrt(n) 6e-8 of its terms' size; here n is at most 8 * 50 or 2 * 130,
# and up to 31 steps pass it on to the next. The bound leaves these 1e-6 some room, and is far below what a wrong
# term, tap or index would give.
SCAN_ERROR = 2e-5


@pytest.fixture(
    params=["native", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHER_PROCESSORS)],
    name="kernels",
)
def _kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels as built for this machine or for a lesser one, with freshly allocated memory full of NaN."""
    if NO_COMPILER:
        pytest.skip("needs a C++ compiler: CXX, or c++ on the PATH")
    if request.param != "native":
        cpuinfo = Path("/proc/cpuinfo")
        if platform.machine() != "x86_64" or not cpuinfo.exists():
            pytest.skip("the lesser processors are x86-64, seen on Linux")
        if request.param == "avx2" and "avx2" not in cpuinfo.read_text():
            pytest.skip("needs AVX2")
        monkeypatch.setattr(native, "_outcome", native.build(OTHER_PROCESSORS[request.param]))
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)


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


def apply_native(p: Problem, u: Tensor, history: Tensor) -> tuple[Tensor, Tensor]:
    cell, W_h, W_g2 = p.cell, p.cell.W_h, None
    pooling = "sum"
    if isinstance(cell, Rnn):
        W_h = W_h.unsqueeze(0)
    elif isinstance(cell, FofeHornn):
        W_h = W_h * torch.tensor([cell.alpha**n for n in range(1, cell.order + 1)]).view(-1, 1, 1)
    elif isinstance(cell, MaxHornn):
        pooling = "max"
    elif isinstance(cell, GatedHornn):
        pooling, W_g2 = "gated", cell.W_g2
    return native.NativeScan.apply(u, history, W_h, W_g2, pooling, cell.activation)


def run_native(p: Problem) -> dict[str, Tensor]:
    u, history = (tensor.clone().requires_grad_() for tensor in (p.u, p.history))
    y, last = apply_native(p, u, history)
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


def error(found: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest number expected."""
    assert found.shape == expected.shape
    assert found.isfinite().all()
    return float((found.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30))


def check(p: Problem, expected: dict[str, Tensor]) -> None:
    found = run_native(p)
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
@pytest.mark.parametrize(("kind", "order"), [("rnn", 1), ("hornn", 3), ("hornn_max", 3), ("hornn_gated", 3)])
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


@pytest.mark.parametrize("kind", CELLS)
def test_equal_taps_and_zero_history(kernels: None, kind: str) -> None:
    """Where every tap is 0 the first one wins, as in `torch.max`."""
    order = 1 if kind == "rnn" else 3
    p = draw(kind, order, "sigmoid", T=4, B=3, H=20, seed=0)
    p = p._replace(history=torch.zeros_like(p.history))
    check(p, run_eager(p)[0])


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
        y, _ = native.NativeScan.apply(u.view(1, 1, -1), zeros, zeros.mT @ zeros, None, "sum", activation)
        expected = getattr(torch, activation)(u.double())
        torch.testing.assert_close(y.view(-1).double(), expected, rtol=5e-7, atol=1e-37)


BOUNDABLE: dict[str, Callable[[int], Cell]] = {
    "srn": lambda H: Srn(H, H),
    "scrn": lambda H: Scrn(H + 7, H, context_size=7),
    "scrn, adaptive": lambda H: Scrn(H + 7, H, context_size=7, adaptive=True),
    "scrn, context alone": lambda H: Scrn(H, 0, context_size=H, adaptive=True),
    "scrn, hidden units alone": lambda H: Scrn(H, H, context_size=0),
    "lstm": lambda H: Lstm(3, H, bias=True),
}


def run_cell(
    name: str, dtype: torch.dtype, T: int, B: int, H: int, bound: float | None = None
) -> dict[str, Tensor]:
    """All results of a cell's scan by name: by the kernels in fp32, by the loop in float64."""
    torch.manual_seed(0)
    cell = BOUNDABLE[name](H)
    for weight in cell.recurrent_weights():
        weight.data *= 5 / math.sqrt(H)
    if getattr(cell, "beta", None) is not None:
        cell.beta.data.normal_()
    G = 4 * H if name == "lstm" else cell.output_size

    def draw_like(tensors: Iterable[Tensor]) -> list[Tensor]:
        return [torch.randn(tensor.shape).to(dtype) for tensor in tensors]

    start = cell.initial_state(B)
    u, *before = (tensor.requires_grad_() for tensor in draw_like([torch.empty(T, B, G), *start]))
    cell = cell.to(dtype)
    cell.project_input = lambda u: u
    backend = "native" if dtype == torch.float32 else "eager"
    assert choose_backend(backend, cell, torch.device("cpu"), bound) == backend
    y, last = scan(cell, u, type(start)(*before), bound, backend)
    results = [y, *last]
    objective = sum((r * cotangent).sum() for r, cotangent in zip(results, draw_like(results), strict=True))
    weights = {weight: p for weight, p in cell.named_parameters() if weight not in ("W_in", "b")}
    gradients = torch.autograd.grad(objective, [u, *before, *weights.values()])
    fields = start._fields
    names = ("y", *(f"last {field}" for field in fields), "u", *fields, *weights)
    found = dict(zip(names, [r.detach() for r in (*results, *gradients)], strict=True))
    return {name: tensor for name, tensor in found.items() if tensor.numel()}


@pytest.mark.parametrize("bound", [None, 0.5, 1e6])
@pytest.mark.parametrize(
    ("T", "B", "H"),
    [(1, 1, 1), (1, 3, 50), (2, 3, 16), (31, 1, 50), (31, 3, 50), (5, 7, 17), (9, 26, 33), (6, 21, 130)],
)
@pytest.mark.parametrize("name", BOUNDABLE)
def test_a_cell_is_the_loop_with_and_without_a_bound(
    kernels: None, name: str, T: int, B: int, H: int, bound: float | None
) -> None:
    expected, found = run_cell(name, torch.float64, T, B, H, bound), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(run_cell(name, torch.float32, T, B, H, bound))
        errors = {result: error(found[-1][result], expected[result]) for result in expected}
        assert max(errors.values()) < SCAN_ERROR, errors
    if "scrn" not in name:  # torch's products make its context, and the gradient of the LSTM's W_h
        for result in set(expected) - {"W_h"}:
            assert torch.equal(found[0][result], found[1][result]), result


@pytest.mark.parametrize("name", BOUNDABLE)
def test_the_bound_bites(kernels: None, name: str) -> None:
    free, bounded = (run_cell(name, torch.float32, 5, 7, 17, bound) for bound in (None, 0.5))
    assert torch.equal(free["y"], bounded["y"])
    for field in {"h", "c", "s"} & set(free):
        assert bounded[field].norm() == pytest.approx(0.5)
        assert free[field].norm() > 1


def test_an_lstm_without_gradients_and_with_a_nan(kernels: None) -> None:
    everything = run_cell("lstm", torch.float32, T=5, B=3, H=20)
    torch.manual_seed(0)
    W_h = Lstm(3, 20, bias=True).W_h.detach() * (5 / math.sqrt(20))
    u, h, c = (torch.randn(shape) for shape in ((5, 3, 80), (3, 20), (3, 20)))
    y, last_h, last_c = native.NativeLstm.apply(u, h, c, W_h)
    assert y.grad_fn is None
    for name, tensor in (("y", y), ("last h", last_h), ("last c", last_c)):
        assert torch.equal(tensor, everything[name])
    u[1, 0, 25] = math.nan
    y, _, last_c = native.NativeLstm.apply(u, h, c, W_h)
    assert y[1, 0].isnan().nonzero().flatten().tolist() == [5]
    assert y[2:, 0].isnan().all()
    assert not y[:, 1:].isnan().any()
    assert last_c[0].isnan().all()


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 80), (3, 20), (3, 20), (80, 21)), "'W_h': (80, 21)"),
        (((2, 3, 60), (3, 20), (3, 20), (80, 20)), "'u': (2, 3, 60)"),
        (((0, 3, 80), (3, 20), (3, 20), (80, 20)), "all sizes >= 1"),
        (((2, 3, 80), (1, 3, 20), (3, 20), (80, 20)), "'h': (1, 3, 20)"),
    ],
)
def test_the_lstm_refuses(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        native.NativeLstm.apply(*map(torch.zeros, shapes))
    with pytest.raises(ValueError, match="fp32 on the CPU"):
        native.NativeLstm.apply(*(torch.zeros(shape).double() for shape in shapes))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"u": torch.zeros(2, 3, 4, dtype=torch.float64)},
            "float64 on cpu for u: set network.backend=deferred",
        ),
        ({"W_h": torch.zeros(2, 4, 4, device="meta")}, "on meta for W_h"),
        ({"history": torch.zeros(3, 3, 4)}, r"'history': \(3, 3, 4\)"),
        ({"u": torch.zeros(0, 3, 4)}, r"'u': \(0, 3, 4\)"),
        ({"W_g2": torch.zeros(2, 4, 4)}, "sum pooling with"),
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
        native.NativeScan.apply(**(arguments | change))


def score(logits: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Negative log-likelihoods (N), their sum's gradients by the logits and by the bias: float64, by autograd."""
    x = logits.double().requires_grad_()
    b = torch.zeros(x.size(1), dtype=torch.float64) if bias is None else bias.double()
    b.requires_grad_()
    nll = -(x + b).log_softmax(-1).gather(1, targets.clamp(min=0).unsqueeze(1)).squeeze(1) * (targets >= 0)
    return nll.detach(), *torch.autograd.grad(nll.sum(), [x, b])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("V", [1, 2, 15, 16, 17, 1001, 10_000])
def test_cross_entropy(kernels: None, V: int, biased: bool, dtype: torch.dtype) -> None:
    """fp32: 1e-6, some ten roundings. bf16 logits are read exactly; their gradient is rounded to 8 bits."""
    torch.manual_seed(0)
    logits = (3 * torch.randn(37, V)).to(dtype)
    bias = torch.randn(V, requires_grad=True) if biased else None
    targets = torch.randint(V, (37,))
    targets[[0, 20, 36]] = -1
    nll, grad, grad_bias = score(logits, bias.detach() if biased else None, targets)
    with torch.no_grad():
        torch.testing.assert_close(native.nll(logits, bias, targets), nll, rtol=1e-6, atol=1e-6)
        loss, found_bias = native.cross_entropy_(logits, bias, targets)
    assert loss.dtype == torch.float64
    assert float(loss) == pytest.approx(float(nll.sum()), rel=1e-6, abs=1e-12)
    half_a_bit = 2.0**-8 if dtype == torch.bfloat16 else 0.0
    torch.testing.assert_close(logits.double(), grad, rtol=half_a_bit, atol=1e-6)
    assert not logits[[0, 20, 36]].any()
    if biased:
        assert found_bias.dtype == torch.float32
        torch.testing.assert_close(found_bias.double(), grad_bias, rtol=1e-6, atol=1e-6)
    else:
        assert found_bias is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropy_of_extreme_logits(kernels: None, dtype: torch.dtype) -> None:
    logits = torch.tensor(
        [[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, -1e4], [-math.inf, 0.0, 1.0]], dtype=dtype
    )
    targets = torch.tensor([1, 0, 2, 1])
    nll, grad, _ = score(logits, None, targets)
    torch.testing.assert_close(native.nll(logits, None, targets), nll, rtol=1e-7, atol=0)
    loss, _ = native.cross_entropy_(logits, None, targets)
    assert float(loss) == pytest.approx(float(nll.sum()), rel=1e-7)
    torch.testing.assert_close(logits.double(), grad, rtol=2.0**-8, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropy_with_a_scaled_gradient(kernels: None, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    logits, bias, targets = (3 * torch.randn(9, 50)).to(dtype), torch.randn(50), torch.randint(50, (9,))
    nll, grad, grad_bias = score(logits, bias, targets)
    loss, found_bias = native.cross_entropy_(logits, bias, targets, 0.01)
    assert float(loss) == pytest.approx(float(nll.sum()), rel=1e-6)
    torch.testing.assert_close(logits.double(), 0.01 * grad, rtol=2.0**-8, atol=1e-8)
    torch.testing.assert_close(found_bias.double(), 0.01 * grad_bias, rtol=1e-6, atol=1e-8)


def test_cross_entropy_does_not_hide_a_nan(kernels: None) -> None:
    logits = torch.zeros(2, 40)
    logits[1, 30] = math.nan
    found = native.nll(logits, None, torch.tensor([1, 2]))
    assert found.isnan().tolist() == [False, True]


def test_cross_entropy_does_not_depend_on_the_number_of_threads(kernels: None) -> None:
    torch.manual_seed(0)
    logits, bias, targets = torch.randn(70, 333), torch.randn(333), torch.randint(333, (70,))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        own = logits.clone()
        found.append([own, *native.cross_entropy_(own, bias, targets)])
    assert all(map(torch.equal, *found))


@needs_compiler
@pytest.mark.parametrize(
    ("logits", "bias", "targets", "message"),
    [
        (torch.zeros(2, 3), None, torch.tensor([0, 3]), "a target must be below V = 3, .* got 3"),
        (
            torch.zeros(2, 3).double(),
            None,
            torch.tensor([0, 1]),
            "logits must be fp32 or bf16 .* got torch.float64",
        ),
        (torch.zeros(3, 2).mT, None, torch.tensor([0, 1]), "contiguous"),
        (torch.zeros(2, 3), torch.zeros(2), torch.tensor([0, 1]), r"bias \(2,\)"),
        (torch.zeros(2, 3), torch.zeros(3).double(), torch.tensor([0, 1]), "float64 on cpu for bias"),
        (
            torch.zeros(2, 3),
            None,
            torch.tensor([0]),
            r"targets must be 2 int64 ids .* got torch.int64 \(1,\)",
        ),
        (torch.zeros(2, 3), None, torch.tensor([0, 1], dtype=torch.int32), "got torch.int32"),
    ],
)
def test_cross_entropy_refuses(logits: Tensor, bias: Tensor | None, targets: Tensor, message: str) -> None:
    for function in (native.nll, native.cross_entropy_):
        with pytest.raises(ValueError, match=message):
            function(logits, bias, targets)


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (8, 8), (33, 8), (100, 41), (400, 1001)])
def test_transpose(kernels: None, shape: tuple[int, int]) -> None:
    x = torch.randn(shape).bfloat16()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found = native.transpose(x)
        assert found.is_contiguous()
        assert torch.equal(found, x.mT)


def test_transpose_refuses() -> None:
    for x in (torch.zeros(2, 3), torch.zeros(2, 3).bfloat16().mT, torch.zeros(6).bfloat16()):
        with pytest.raises(ValueError, match="only a contiguous bf16 matrix on the CPU"):
            native.transpose(x)


SHAPES = [(4, 3), (2, 3, 17), (5,), (1,), (40, 400), (33_333,)]


def test_grad_norm(kernels: None) -> None:
    torch.manual_seed(0)
    grads = [torch.randn(shape) for shape in SHAPES]
    expected = math.sqrt(sum(float(grad.double().square().sum()) for grad in grads))
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert native.grad_norm(grads) == pytest.approx(expected, rel=1e-12)
    grads[4][39, 399] = 1e30
    assert native.grad_norm(grads) == pytest.approx(1e30, rel=1e-6)
    for bad in (math.inf, -math.inf, math.nan):
        grads[4][39, 399] = bad
        assert not math.isfinite(native.grad_norm(grads))
    assert native.grad_norm([]) == 0


@pytest.mark.parametrize("clip_mode", ["element", "norm"])
@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("max_norm", [None, 1.1])
@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_update_is_momentum_sgd(
    kernels: None, momentum: float, decay: float, max_norm: float | None, clip: float | None, clip_mode: str
) -> None:
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in SHAPES]
    momenta = [torch.zeros(shape) for shape in SHAPES]
    reference = [torch.nn.Parameter(weight.double()) for weight in weights]
    optimizer = MomentumSGD(reference, 0.3, momentum, decay, max_norm, clip, clip_mode)
    versions = [weight._version for weight in weights]
    for _ in range(4):
        grads = [torch.randn(shape) for shape in SHAPES]
        for parameter, grad in zip(reference, grads, strict=True):
            parameter.grad = grad.double()
        optimizer.step()
        scale, bound = 1.0, clip or math.inf
        if clip and clip_mode == "norm":
            scale, bound = clip / native.grad_norm(grads), math.inf
        native.momentum_update_(weights, momenta, grads, 0.3, momentum, decay, bound, scale, max_norm)
    for weight, velocity, parameter in zip(weights, momenta, reference, strict=True):
        assert error(weight, parameter.detach()) < 1e-6
        if momentum:
            assert error(velocity, optimizer.state[parameter]["momentum"]) < 1e-6
    assert all(weight._version > before for weight, before in zip(weights, versions, strict=True))


def test_the_update_keeps_a_nan(kernels: None) -> None:
    weight, velocity, grad = torch.zeros(3), torch.zeros(3), torch.tensor([1.0, math.nan, -math.inf])
    native.momentum_update_([weight], [velocity], [grad], 0.5, 0.9, 0.0, 2.0, 1.0, None)
    assert weight[0] == -0.5
    assert weight[1].isnan()
    assert weight[2] == 1.0


def test_an_update_without_momentum_needs_none(kernels: None) -> None:
    torch.manual_seed(0)
    weight, grad = torch.randn(3, 40), torch.randn(3, 40)
    other, zeros = weight.clone(), torch.zeros(3, 40)
    native.momentum_update_([weight], [torch.empty(0)], [grad], 0.3, 0.0, 0.1, math.inf, 1.0, None)
    native.momentum_update_([other], [zeros], [grad], 0.3, 0.0, 0.1, math.inf, 1.0, None)
    assert torch.equal(weight, other)
    with pytest.raises(ValueError, match="each momentum must have the shape of its parameter"):
        native.momentum_update_([weight], [torch.empty(0)], [grad], 0.3, 0.9, 0.1, math.inf, 1.0, None)


def test_noise_is_normal(kernels: None) -> None:
    noise = torch.zeros(3000, 331)
    version = noise._version
    native.add_noise_(noise, 2.0, seed=5)
    assert noise._version > version
    x = (noise.flatten().double() / 2).sort().values
    n = x.numel()
    steps = torch.arange(1, n + 1, dtype=torch.float64) / n
    # Kolmogorov and Smirnov's distance exceeds 1.95 / sqrt(n) by chance once in a thousand
    assert float((torch.special.ndtr(x) - steps).abs().max()) < 1.95 / math.sqrt(n)
    for moment, expected, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert float(x.pow(moment).mean()) == pytest.approx(expected, abs=3.3 * math.sqrt(spread / n))
    assert 4.5 < float(x.abs().max()) < 5.9
    square = noise / 2
    for one, other in (  # neighbours in a row and in a column, and the two of one angle and radius
        (square[:, 1:], square[:, :-1]),
        (square[1:], square[:-1]),
        (square[:, 0], square[:, 16]),
        (square[:, 0] ** 2 - 1, square[:, 16] ** 2 - 1),
    ):
        products = (one * other).double()
        assert abs(float(products.mean())) < 3.5 * float(products.std()) / math.sqrt(products.numel())


def test_noise_of_a_row_is_its_own(kernels: None) -> None:
    start, rows = torch.randn(700, 45), torch.tensor([3, 4, 699])
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(start.clone())
        native.add_noise_(found[-1], 0.1, seed=2**62 + 1)
    assert torch.equal(*found)
    some = start.clone()
    native.add_noise_(some, 0.1, 2**62 + 1, rows)
    assert torch.equal(some[rows], found[0][rows])
    others = torch.ones(700, dtype=torch.bool).index_fill(0, rows, value=False)
    assert torch.equal(some[others], start[others])
    native.add_noise_(some, 0.1, 1, torch.empty(0, dtype=torch.int64))
    assert torch.equal(some[others], start[others])
    another = start.clone()
    native.add_noise_(another, 0.1, seed=2)
    assert not (another == found[0]).any(1).all()
    vector = torch.zeros(5)
    native.add_noise_(vector, 1.0, 7)
    assert vector.unique().numel() == 5


@needs_compiler
@pytest.mark.parametrize(
    ("weight", "rows", "message"),
    [
        (torch.zeros(2, 3).double(), None, "float64 on cpu for weight"),
        (torch.zeros(2, 3).mT, None, "contiguous"),
        (torch.zeros(0, 3), None, r"not empty, .* got \(0, 3\)"),
        (torch.zeros(3), torch.tensor([0]), r"a matrix, got \(3,\)"),
        (torch.zeros(2, 3), torch.tensor([0, 2]), "rows must be from 0 to 1, got 0 to 2"),
        (torch.zeros(2, 3), torch.tensor([0.0]), "int64 on the CPU, got torch.float32"),
    ],
)
def test_noise_refuses(weight: Tensor, rows: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        native.add_noise_(weight, 0.1, 0, rows)


@needs_compiler
@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (3, 5), (4,)), ((2, 3, 4), (3, 4), (5,)), ((0, 3, 4), (3, 4), (4,))]
)
def test_the_leak_refuses(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match=r"a native leak takes b \(T, B, C\), s \(B, C\) and kept \(C\)"):
        native.NativeLeak.apply(*map(torch.zeros, shapes))


@needs_compiler
@pytest.mark.parametrize(
    ("params", "grads", "message"),
    [
        ([torch.zeros(2)], [torch.zeros(3)], "each gradient must have the shape of its parameter"),
        ([torch.zeros(2)], [], "each gradient must have the shape of its parameter"),
        ([torch.zeros(2, 3).mT], [torch.zeros(3, 2)], "contiguous"),
        ([torch.zeros(2).double()], [torch.zeros(2)], "float64 on cpu for parameter 0"),
    ],
)
def test_the_update_refuses(params: list[Tensor], grads: list[Tensor], message: str) -> None:
    momenta = [torch.zeros(param.shape) for param in params]
    with pytest.raises(ValueError, match=message):
        native.momentum_update_(params, momenta, grads, 0.1, 0.9, 0.0, math.inf, 1.0, None)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A process that has not tried to build yet, an empty cache, and a compiler that is a given shell script."""
    monkeypatch.setattr(native, "_outcome", None)
    monkeypatch.setenv("HORNN_CACHE", str(tmp_path / "cache"))

    def compiler(script: str) -> Path:
        path = tmp_path / "compiler"
        path.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CXX", str(path))
        return tmp_path / "calls"

    return compiler


@pytest.mark.parametrize(
    "script",
    [
        "echo 'native.cpp: error: no licence today'; exit 1",
        pytest.param(
            'case "$*" in *native.cpp*) echo \'native.cpp: error: no licence today\'; exit 1;; esac; exec c++ "$@"',
            marks=needs_compiler,
        ),
    ],
    ids=["always", "only on our source"],
)
def test_a_compiler_that_fails(
    fresh: Callable[[str], Path], script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = fresh(script)
    reason = native.why_not()
    assert reason is not None
    assert (
        "cannot be built (native.cpp: error: no licence today): install a C++ compiler (g++ or clang)"
        in reason
    )
    assert "network.backend=deferred" in reason
    assert "\n" not in reason
    before = calls.read_text()
    with pytest.raises(native.NativeError, match=r"(?s)deferred\n.*no licence today"):
        native.load()
    assert calls.read_text() == before, "a build that failed is not tried again"
    assert capsys.readouterr().err.count("building the native kernels (once") == 1


def test_no_compiler(
    fresh: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    assert "no-such-compiler' is not found): install a C++ compiler" in str(native.why_not())
    monkeypatch.delenv("CXX")
    assert "no-such-compiler' is not found" in str(native.why_not()), "it is not looked for again"
    assert not capsys.readouterr().err


def test_threads_that_load_at_once_build_once(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[int] = []
    monkeypatch.setattr(native, "build", lambda: time.sleep(0.05) or builds.append(1) or "operators")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: native.why_not(), range(4))) == [None] * 4
    assert len(builds) == 1


@needs_compiler
def test_a_cache_that_cannot_be_written(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HORNN_CACHE", str(tmp_path / "file"))
    assert "set HORNN_CACHE to a folder that can be written" in str(native.why_not())


BUILD = """
import torch
from hornn.kernels import native
native._outcome = native.build(["-O0", "-fopenmp"])
print(float(native.nll(torch.zeros(1, 2), None, torch.tensor([0]))))
"""


def start_build(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD],
        env={**os.environ, "HORNN_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_compiler
@pytest.mark.slow
def test_processes_that_build_at_once(tmp_path: Path) -> None:
    """One builds, the other waits.

    A build that was killed is begun anew, though torch would wait for its lock for ever; a damaged library is named.
    """
    outcomes = [
        process.communicate(timeout=300) for process in [start_build(tmp_path), start_build(tmp_path)]
    ]
    assert [float(out) for out, _ in outcomes] == pytest.approx([math.log(2)] * 2)
    assert sum(err.count("building the native kernels") for _, err in outcomes) == 1
    (library,) = tmp_path.glob("*/native.so")
    assert not (library.parent / "build").exists()

    whole = library.read_bytes()
    library.unlink()
    (library.parent / "build").mkdir()
    (library.parent / "build" / "lock").touch()
    (library.parent / "build" / f"{library.parent.name}.so").write_bytes(whole[:1000])
    out, err = start_build(tmp_path).communicate(timeout=300)
    assert float(out) == pytest.approx(math.log(2))
    assert "building the native kernels" in err

    library.write_text("damaged")
    _, err = start_build(tmp_path).communicate(timeout=300)
    assert f"cannot be written to or loaded from {library.parent}" in err


@needs_compiler
@pytest.mark.parametrize("model", ["rnn", "hornn_max", "hornn_fofe", "hornn_gated", "lstm", "gru"])
def test_training_with_and_without_the_kernels(
    command: Any, text: list[str], tmp_path: Path, model: str
) -> None:
    """Three epochs, to the rounding of fp32 that training magnifies."""
    found = {}
    for backend in ("eager", "deferred", "auto"):
        done = command(
            "train",
            *text,
            f"model={model}",
            f"network.backend={backend}",
            "network.precision=fp32",
            "model.hidden_size=8",
            "optimizer.lr=0.5",
            "optimizer.clip=0.1",
            "optimizer.max_norm=2",
            "trainer.max_epochs=3",
            "logger=csv",
            f"run_dir={tmp_path / backend}",
        )
        assert done.code == 0, done.err
        result = json.loads((tmp_path / backend / "result.json").read_text())
        found[result["backend"], result["native_kernels"]] = result["test_ppl"]
    fast = "deferred" if model == "gru" else "native"
    assert set(found) == {("eager", False), ("deferred", False), (fast, True)}
    for ppl in found.values():
        assert ppl == pytest.approx(found["eager", False], rel=1e-4)
