"""The only time loop: runs a cell over a chunk."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, State
from hornn.cells.hornn import GatedPooling, MaxPooling
from hornn.cells.lstm import EMISSION, MEMORY
from hornn.cells.recurrence import ACTIVATIONS, Activation, Input, Past, Recurrence, Taps
from hornn.cells.scrn import Leak
from hornn.checks import require_choice
from hornn.kernels import native
from hornn.kernels.deferred import bound_norm, deferred_scan, find_obstacle

POOLINGS: dict[type, str] = {Activation: "sum", MaxPooling: "max", GatedPooling: "gated"}
BACKENDS = ("auto", "eager", "deferred", "native", "parallel")
PARALLEL_STEPS = 256  # computed at once, of a longer chunk: the memory that they take grows with their square


def choose_backend(
    backend: str, cell: Cell, device: torch.device, state_grad_norm: float | None = None
) -> str:
    """What runs `cell` on `device`: for `auto` the first of parallel, native, deferred and eager that can.

    Raises ValueError, which names those that can, for a backend that cannot.
    """
    require_choice("network.backend", backend, BACKENDS)
    recurrence = cell.recurrence()
    able, obstacle = ["eager"], find_obstacle(recurrence, state_grad_norm)
    obstacles = {"deferred": obstacle, "native": obstacle}
    if recurrence is not None and obstacle is None:
        able.append("deferred")
        if backend in ("auto", "native"):
            obstacles["native"] = find_native_obstacle(recurrence, device, state_grad_norm)
            if obstacles["native"] is None:
                able.append("native")
    obstacles["parallel"] = find_parallel_obstacle(cell, state_grad_norm)
    if obstacles["parallel"] is None:
        able.append("parallel")
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


def find_native_obstacle(
    recurrence: Recurrence, device: torch.device, state_grad_norm: float | None
) -> str | None:
    """Why the native scan cannot run this recurrence, which can be deferred, on this device; None if it can."""
    if device.type != "cpu":
        return "the native kernels are for CPUs"
    pooling = native_pooling(recurrence)
    if not (pooling or is_lstm(recurrence) or has_context(recurrence)):
        return "there are native kernels for rnn, srn, scrn, lstm and the language-model HORNNs"
    if state_grad_norm is not None and pooling not in (None, "sum"):
        return f"network.state_grad_norm has no native kernel with {pooling} pooling"
    taps = next(operand for operand in recurrence.registers[-1].operands if isinstance(operand, Taps))
    if taps.weight.dtype != torch.float32:
        return f"the native kernels compute in fp32, its weights are {taps.weight.dtype}"
    return native.why_not()


def is_lstm(recurrence: Recurrence) -> bool:
    """Whether its registers are the cell and the output of an LSTM, whose gates see the last output."""
    if [register.function for register in recurrence.registers] != [MEMORY, EMISSION]:
        return False
    c, h = recurrence.registers
    sources = [taps.register for taps in (*c.operands, *h.operands) if isinstance(taps, Taps)]
    return sources == [h.name, h.name] and recurrence.state == (h.name, c.name)


def has_context(recurrence: Recurrence) -> bool:
    """Whether it is an Elman network that also sees this step's value of leaky integrators, as SCRN is."""
    if len(recurrence.registers) != 2:
        return False
    context, h = recurrence.registers
    seen = [(taps.register, taps.lag, taps.weight.ndim) for taps in h.operands if isinstance(taps, Taps)]
    return (
        isinstance(context.function, Leak)
        and context.operands[1] == Past(context.name, 1)
        and isinstance(h.function, Activation)
        and tuple(map(type, h.operands)) == (Input, Taps, Taps)
        and seen == [(context.name, 0, 2), (h.name, 1, 2)]
        and recurrence.state in ((context.name, h.name), (h.name, context.name))
    )


def native_pooling(recurrence: Recurrence) -> str | None:
    """How h_t = f(u_t, products of the last K states) pools them, None for any other recurrence."""
    if len(recurrence.registers) != 1:
        return None
    register = recurrence.registers[0]
    pooling = POOLINGS.get(type(register.function))
    kinds = (Input, Taps, Taps) if pooling == "gated" else (Input, Taps)
    fits = tuple(map(type, register.operands)) == kinds
    return pooling if fits and all(taps.lag == 1 for taps in register.operands[1:]) else None  # type: ignore[union-attr]


def scan(
    cell: Cell, x: Tensor, state: State, state_grad_norm: float | None = None, backend: str = "eager"
) -> tuple[Tensor, State]:
    """Run `cell` over the inputs x (T, B, I) from `state`.

    Returns the outputs (T, B, output_size) and the state after the last step. With `state_grad_norm` the
    gradient that flows back into each tensor of each state is scaled to at most that Euclidean norm.

    `backend` is `eager`, the loop over `cell.step`, which is the specification; `deferred`
    (`hornn.kernels.deferred`) or `native` (`hornn.kernels.native`), the same numbers to rounding, for cells that
    `choose_backend` allows; `parallel`, all steps at once, likewise, for cells with `all_steps`.
    """
    u = cell.project_input(x)
    if backend == "parallel":
        blocks = []
        for block in u.split(PARALLEL_STEPS):
            y, state = cell.all_steps(block, state)
            blocks.append(y)
        return cell.project_output(torch.cat(blocks)), state
    if backend != "eager":
        recurrence = cell.recurrence()
        assert recurrence is not None, "choose_backend allows no other"
        run = native_scan if backend == "native" else deferred_scan
        y, state = run(recurrence, u, state, state_grad_norm)
        return cell.project_output(y), state
    outputs = []
    for u_t in u.unbind(0):
        if state_grad_norm is not None:
            state = type(state)(*(BoundGradient.apply(tensor, state_grad_norm) for tensor in state))
        y_t, state = cell.step(u_t, state)
        outputs.append(y_t)
    return cell.project_output(torch.stack(outputs)), state


def native_scan(
    recurrence: Recurrence, u: Tensor, state: State, state_grad_norm: float | None = None
) -> tuple[Tensor, State]:
    """`deferred_scan` by the native kernels, for what `find_native_obstacle` allows."""
    if is_lstm(recurrence):
        gates = torch.cat([register.operands[1].weight for register in recurrence.registers])  # type: ignore[union-attr]
        h, c = state
        y, h, c = native.NativeLstm.apply(u, h, c, gates, state_grad_norm)
        return y, type(state)(h, c)
    if has_context(recurrence):
        return context_scan(recurrence, u, state, state_grad_norm)
    register = recurrence.registers[0]
    pooling = POOLINGS[type(register.function)]
    weights = [taps.weight for taps in register.operands[1:]]  # type: ignore[union-attr]
    W_h = weights[-1] if weights[-1].ndim == 3 else weights[-1].unsqueeze(0)
    W_g2 = weights[0] if len(weights) > 1 else None
    history = state[0] if state[0].ndim == 3 else state[0].unsqueeze(0)
    y, last = native.NativeScan.apply(
        u, history, W_h, W_g2, pooling, name_activation(register.function), state_grad_norm
    )
    return y, type(state)(last if state[0].ndim == 3 else last.squeeze(0))


def context_scan(
    recurrence: Recurrence, u: Tensor, state: State, state_grad_norm: float | None
) -> tuple[Tensor, State]:
    """The native scan of a recurrence that `has_context`: first the context, then the network that sees it."""
    context, h = recurrence.registers
    inputs, _, *learned = context.operands
    columns, P, R = h.operands
    before = dict(zip(recurrence.state, state, strict=True))
    kept = context.function.kept(*(vector.value for vector in learned))  # type: ignore[attr-defined, union-attr]
    s, last_s = native.NativeLeak.apply(
        u[..., inputs.start : inputs.stop],  # type: ignore[union-attr]
        before[context.name],
        kept if isinstance(kept, Tensor) else u.new_full((context.width,), kept),
        state_grad_norm,
    )
    y, last_h = u.new_empty(*s.shape[:2], 0), before[h.name]
    if h.width:
        a = u[..., columns.start : columns.stop] + F.linear(s, P.weight)  # type: ignore[union-attr]
        W_h = R.weight.unsqueeze(0)  # type: ignore[union-attr]
        y, last = native.NativeScan.apply(
            a, last_h.unsqueeze(0), W_h, None, "sum", name_activation(h.function), state_grad_norm
        )
        last_h = last.squeeze(0)
    outputs, after = {context.name: s, h.name: y}, {context.name: last_s, h.name: last_h}
    return (
        torch.cat([outputs[name] for name in recurrence.output], dim=-1),
        type(state)(*(after[name] for name in recurrence.state)),  # type: ignore[index]
    )


def name_activation(function: Any) -> str:
    """The name of f, which is the register's function or within it."""
    f = function if isinstance(function, Activation) else function.f
    return next(name for name, known in ACTIVATIONS.items() if known is f)


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
        return bound_norm(grad, ctx.max_norm), None
