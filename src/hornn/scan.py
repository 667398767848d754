"""The only time loop: runs a cell over a chunk."""

import torch
from torch import Tensor

from hornn.cells.base import Cell, State, require_choice

BACKENDS = ("auto", "eager")


def resolve_backend(backend: str) -> str:
    """Turn `auto` into the name of the backend that runs; ValueError names those available."""
    require_choice("network.backend", backend, BACKENDS)
    return "eager" if backend == "auto" else backend


def scan(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over the inputs x (T, B, I) from `state`.

    Returns the outputs (T, B, output_size) and the state after the last step.
    """
    outputs = []
    for u_t in cell.project_input(x).unbind(0):
        y_t, state = cell.step(u_t, state)
        outputs.append(y_t)
    return cell.project_output(torch.stack(outputs)), state


def detach(state: State) -> State:
    """The same state cut off from its history, so that no gradient flows into the chunk before."""
    return type(state)(*(tensor.detach() for tensor in state))
