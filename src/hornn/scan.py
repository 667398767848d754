"""The only time loop: runs a cell over a chunk."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, State
from hornn.checks import require_choice
from hornn.kernels.recorded import find_graph_obstacle, run_recorded
from hornn.kernels.reduced import LinearsInBf16
from hornn.kernels.table import find_native_obstacle, run_native
from hornn.norm import norm_over_columns

BACKENDS = ("auto", "eager", "native", "graph", "parallel")
PARALLEL_STEPS = 256  # computed at once, of a longer chunk: the memory that they take grows with their square


def choose_backend(
    backend: str, cell: Cell, device: torch.device, state_grad_norm: float | None = None
) -> str:
    """What runs `cell` on `device`: for `auto` the first of parallel, native, graph and eager that can.

    Raises ValueError for a backend that cannot, and names the backends that can.
    """
    require_choice("network.backend", backend, BACKENDS)
    if backend == "eager":
        return backend
    obstacles = {
        "graph": find_graph_obstacle(device, state_grad_norm),
        "native": find_native_obstacle(cell, device, state_grad_norm),
        "parallel": find_parallel_obstacle(cell, state_grad_norm),
    }
    able = ["eager", *(name for name, obstacle in obstacles.items() if obstacle is None)]
    if backend == "auto":
        return able[-1]
    if backend not in able:
        raise ValueError(
            f"network.backend={backend} cannot run {type(cell).__name__} on this {device.type}: "
            f"{obstacles[backend]}; use {', '.join(('auto', *able))}"
        )
    return backend


def find_parallel_obstacle(cell: Cell, state_grad_norm: float | None) -> str | None:
    """Why the steps of a chunk of this cell cannot be computed at once; None if they can."""
    if not cell.is_parallel():
        return "a step of this cell waits for the one before it"
    if state_grad_norm is not None:
        return "network.state_grad_norm bounds the gradient of the state of every single step"
    return None


def scan(
    cell: Cell,
    x: Tensor,
    state: State,
    state_grad_norm: float | None = None,
    backend: str = "eager",
    rows: Tensor | None = None,
    in_bf16: bool = False,
    last: int | None = None,
) -> tuple[Tensor, State]:
    """Run `cell` over the inputs x (T, B, I) from `state`.

    Where inputs repeat, x may hold each of them once, (1, D, I), and `rows` (T, B) says which one a step reads: the
    products of `project_input` are then of D inputs in place of T * B.

    Returns the outputs (T, B, output_size), with `last` of the last steps alone, and the state after the last step.
    With `state_grad_norm` the gradient that flows back into each tensor of each state is scaled to at most that
    Euclidean norm.

    `backend` is `eager`, the loop over `cell.step`, which is the specification. `graph` replays that loop on a GPU
    (`hornn.kernels.recorded`). `native` (`hornn.kernels.table`, replayed likewise on a GPU) and `parallel`
    (`cell.all_steps`, all steps at once) give the same numbers to rounding. Each is for cells that `choose_backend`
    allows.

    `in_bf16`, for `native` on a CPU alone, has the loop multiply in bf16 (`run_native`), and likewise each `F.linear`
    of `project_input` and `project_output`.
    """
    beside = LinearsInBf16() if in_bf16 else nullcontext()
    with beside:
        u = cell.project_input(x)
    if rows is not None:
        u = F.embedding(rows, u.flatten(0, 1))
    if backend == "parallel":
        y, state = run_parallel(cell, u, state, last)
    elif backend == "native":
        loop = partial(run_native, cell, max_norm=state_grad_norm, in_bf16=in_bf16)
        if u.device.type == "cuda":
            y, state = run_recorded(loop, cell, u, state, state_grad_norm, backend)
        else:
            y, state = loop(u, state)
    elif backend == "graph":
        loop = partial(run_eager, cell, state_grad_norm=state_grad_norm)
        y, state = run_recorded(loop, cell, u, state, state_grad_norm, backend)
    else:
        y, state = run_eager(cell, u, state, state_grad_norm)
    with beside:
        return cell.project_output(y if last is None else y[-last:]), state


def run_eager(cell: Cell, u: Tensor, state: State, state_grad_norm: float | None) -> tuple[Tensor, State]:
    """One step after the other, as the cell writes it: u (T, B, G) -> y (T, B, W) and the last state."""
    outputs = []
    for u_t in u.unbind(0):
        if state_grad_norm is not None:
            state = type(state)(*(BoundGradient.apply(tensor, state_grad_norm) for tensor in state))
        y_t, state = cell.step(u_t, state)
        outputs.append(y_t)
    return torch.stack(outputs), state


def run_parallel(cell: Cell, u: Tensor, state: State, last: int | None = None) -> tuple[Tensor, State]:
    """What `run_eager` gives, by `cell.all_steps` in blocks of `PARALLEL_STEPS`; `last`: the last steps' outputs."""
    before = 0 if last is None else len(u) - last
    for block in u[:before].split(PARALLEL_STEPS) if before else ():
        state = cell.state_after(block, state)
    blocks = []
    for block in u[before:].split(PARALLEL_STEPS):
        y, state = cell.all_steps(block, state)
        blocks.append(y)
    return torch.cat(blocks), state


def detach(state: State) -> State:
    """The state cut off from its history, so that no gradient flows back beyond it."""
    return type(state)(*(tensor.detach() for tensor in state))


class BoundGradient(torch.autograd.Function):
    """The identity, whose gradient is scaled to Euclidean norm c wherever its norm exceeds c.

    Source: the code released with Mikolov et al. 2015 ("Learning longer memory in recurrent neural
    networks"), which renormalises the gradient of the hidden and of the context state, each as one vector over
    the whole batch, at every step back in time.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, max_norm: float) -> Tensor:
        ctx.max_norm = max_norm
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return bound_norm(grad, ctx.max_norm), None


def bound_norm(grad: Tensor, max_norm: float) -> Tensor:
    """The gradient scaled to Euclidean norm c = `max_norm` where its norm over all columns exceeds c."""
    return grad * (max_norm / norm_over_columns(grad)).clamp(max=1.0).to(grad.dtype)
