"""The only time loop: runs a cell over a chunk."""

from typing import Any

import torch
from torch import Tensor

from hornn.cells.base import Cell, State
from hornn.kernels.deferred import bound_norm, deferred_scan

BACKENDS = ("auto", "eager", "deferred")


def scan(
    cell: Cell, x: Tensor, state: State, state_grad_norm: float | None = None, backend: str = "eager"
) -> tuple[Tensor, State]:
    """Run `cell` over the inputs x (T, B, I) from `state`.

    Returns the outputs (T, B, output_size) and the state after the last step. With `state_grad_norm` the
    gradient that flows back into each tensor of each state is scaled to at most that Euclidean norm.

    `backend` is `eager`, the loop over `cell.step`, which is the specification, or `deferred`
    (`hornn.kernels.deferred`), the same numbers to rounding.
    """
    u = cell.project_input(x)
    if backend == "deferred":
        recurrence = cell.recurrence()
        assert recurrence is not None
        y, state = deferred_scan(recurrence, u, state, state_grad_norm)
        return cell.project_output(y), state
    outputs = []
    for u_t in u.unbind(0):
        if state_grad_norm is not None:
            state = type(state)(*(BoundGradient.apply(tensor, state_grad_norm) for tensor in state))
        y_t, state = cell.step(u_t, state)
        outputs.append(y_t)
    return cell.project_output(torch.stack(outputs)), state


def detach(state: State) -> State:
    """The same state cut off from its history, so that no gradient flows back beyond it."""
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
        norm = torch.linalg.vector_norm(grad)
        return grad * (ctx.max_norm / norm).clamp(max=1.0), None
