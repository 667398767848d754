"""The loop over time: which backend runs it, and the bound on the gradient of a state."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.base import Cell
from hornn.cells.elman import Rnn
from hornn.cells.hornn import Hornn
from hornn.cells.lstm import Lstm
from hornn.cells.scrn import Scrn
from hornn.kernels import fused
from hornn.network import SequenceModel
from hornn.scan import choose_backend, scan
from reference.cases import build_cell, draw, draw_state, fill, seeded

T, B, INPUT, H = 7, 3, 5, 6
CPU = torch.device("cpu")


def test_the_choice_of_a_backend() -> None:
    assert choose_backend("eager", Rnn(INPUT, H), CPU) == "eager"
    for name in ("highway", "leaky_rnn"):
        assert choose_backend("auto", build_cell(name, INPUT, hidden_size=H), CPU) == "eager"
    with pytest.raises(ValueError, match="one of auto, eager, native, graph, parallel, got 'fused'"):
        choose_backend("fused", Rnn(INPUT, H), CPU)


@pytest.mark.parametrize(("missing", "chosen"), [(None, "native"), ("Triton is missing", "graph")])
def test_loops_are_recorded_on_a_gpu_alone(
    missing: str | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "why_not", lambda: missing)
    gpu = torch.device("cuda")
    for name, expected in (("highway", "graph"), ("rnn", chosen)):
        cell = build_cell(name, INPUT, hidden_size=H)
        assert choose_backend("auto", cell, gpu) == choose_backend("auto", cell, gpu, 1.0) == expected
    assert choose_backend("auto", build_cell("nnlm", INPUT, hidden_size=H), gpu) == "parallel"
    with pytest.raises(
        ValueError, match="cannot run LeakyRnn on this cpu: CUDA graphs are for GPUs; use auto, eager"
    ):
        choose_backend("graph", build_cell("leaky_rnn", INPUT, hidden_size=H), CPU)


def test_a_network_says_what_it_runs() -> None:
    network = SequenceModel([3, 2, 1], lambda input_size: Rnn(input_size, H), H, backend="eager")
    network.prepare(CPU)
    assert (network.scan_backend, network.native) == ("eager", False)


@pytest.mark.parametrize(("backend", "said"), [("auto", "Triton is missing"), ("graph", None)])
def test_a_network_says_why_a_gpu_has_no_kernels(
    backend: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "why_not", lambda: "Triton is missing")
    network = SequenceModel([3, 2, 1], lambda input_size: Rnn(input_size, H), H, backend=backend)
    network.prepare(torch.device("cuda"))
    assert (network.scan_backend, network.native, network.missing) == ("graph", False, said)


def run(cell: Cell, bound: float | None) -> tuple[Tensor, Any, list[Tensor]]:
    """Outputs, last state, and the leaves that a gradient reaches."""
    x, state = draw(seeded(1), T, B, INPUT).requires_grad_(), draw_state(cell, B, seeded(2))
    state = type(state)(*(tensor.requires_grad_() for tensor in state))
    return *scan(cell, x, state, bound), [x, *state, *cell.parameters()]


def run_with_hooks(cell: Cell, bound: float) -> tuple[Tensor, Any, list[Tensor]]:
    """The same with the bound as a hook on each state that a step reads."""
    x, first = draw(seeded(1), T, B, INPUT).requires_grad_(), draw_state(cell, B, seeded(2))
    first = type(first)(*(tensor.requires_grad_() for tensor in first))
    state, outputs = first, []
    for u_t in cell.project_input(x):
        state = type(state)(*(tensor.clone() for tensor in state))
        for tensor in state:
            tensor.register_hook(lambda grad: grad * min(1.0, bound / float(grad.norm())))
        y_t, state = cell.step(u_t, state)
        outputs.append(y_t)
    return torch.stack(outputs), state, [x, *first, *cell.parameters()]


@pytest.mark.parametrize(
    "cell",
    [
        Rnn(INPUT, H),
        Lstm(INPUT, H),
        Hornn(INPUT, H, order=3),
        Scrn(INPUT, H, context_size=4, embedded_input=False),
        Scrn(INPUT, H, 4, adaptive=True, context_input="previous", embedded_input=False),
    ],
    ids=lambda cell: type(cell).__name__,
)
@pytest.mark.parametrize("bound", [1e-3, 0.5, 1e6])
def test_the_bound_on_the_gradient_of_a_state(cell: Cell, bound: float) -> None:
    fill(cell, seeded(0))
    found = []
    for y, last, leaves in (run(cell, bound), run_with_hooks(cell, bound), run(cell, None)):
        objective = sum((tensor * draw(seeded(3), *tensor.shape)).sum() for tensor in (y, *last))
        assert isinstance(objective, Tensor)
        found.append([y, *last, *torch.autograd.grad(objective, leaves)])
    assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)
    assert (bound < 1e6) != all(map(torch.equal, found[0], found[2]))


def test_an_output_that_nobody_differentiates() -> None:
    """The gradient of one step's output, or of the last state alone, is that of finite differences."""
    cell = fill(Lstm(INPUT, H), seeded(0))
    x, state, step = draw(seeded(1), T, B, INPUT), draw_state(cell, B, seeded(2)), 1e-6
    direction = draw(seeded(3), *cell.W_h.shape)
    for pick in (lambda y, last: y[2].sum(), lambda y, last: last.c.sum()):
        slope = (torch.autograd.grad(pick(*scan(cell, x, state)), cell.W_h)[0] * direction).sum()
        with torch.no_grad():
            sums = []
            for shift in (-step, 2 * step):
                cell.W_h += shift * direction
                sums.append(pick(*scan(cell, x, state)))
            cell.W_h -= step * direction
        assert float(slope) == pytest.approx(float(sums[1] - sums[0]) / (2 * step), rel=1e-6)


def test_state_gradient_is_bounded_at_every_step() -> None:
    torch.manual_seed(0)
    cell = Lstm(input_size=3, hidden_size=4).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    norms = {}
    for bound in (None, 1e6, 1e-3):
        state = cell.initial_state(2)
        h = state.h.requires_grad_()
        y, _ = scan(cell, x, state, bound)
        (gradient,) = torch.autograd.grad(y[-1].sum() * 100, h)
        norms[bound] = float(gradient.norm())
    assert norms[None] == pytest.approx(norms[1e6])
    assert norms[1e-3] <= 1e-3 < norms[None]
