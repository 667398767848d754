"""The time loops of `hornn.kernels.scans` on a GPU: one kernel of `fused_steps` a step and direction, in fp32.

They are launched one by one, so they are to be recorded (`hornn.kernels.recorded`). Nothing waits for the GPU. The
backward passes run back through time for the gradients of the states alone; each weight's gradient is then one product
over all steps and columns.
"""

import os
import shutil
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hornn.kernels.scans import NativeScan


def why_not() -> str | None:
    """Why the kernels cannot be used, in one line; None if they can."""
    if find_spec("triton") is None:
        return "the kernels of a GPU need Triton, which is not installed"
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None and shutil.which("clang") is None:
        return f"Triton needs a C compiler, and {compiler!r} is not found"
    return None


@cache
def are_there() -> bool:
    return why_not() is None


def can_read(x: Tensor) -> bool:
    """Whether these kernels can: x is on a GPU, in fp32 or bf16, and they are there."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and are_there()


def require_fused(in_bf16: bool, **tensors: Tensor | None) -> None:
    """Raise ValueError unless all tensors are fp32 and on one device, and the products are to be in fp32."""
    if in_bf16:
        raise ValueError("the time loops of a GPU multiply in fp32, not in bf16")
    kinds = {(tensor.dtype, tensor.device) for tensor in tensors.values() if tensor is not None}
    if {dtype for dtype, _ in kinds} != {torch.float32} or len(kinds) > 1:
        raise ValueError(f"the kernels of a GPU take fp32 tensors of one GPU, got {kinds}")


class Tiles(NamedTuple):
    """How a step of B columns is cut: what one program computes, and how it sums (`fused_steps.product`)."""

    rows: int  # columns of the batch
    columns: int  # units, or units times gates
    depth: int
    groups: int

    @classmethod
    def of(cls, B: int, columns: int = 8) -> "Tiles":
        rows = min(64, max(16, 1 << (B - 1).bit_length()))
        groups = 2048 // (rows * columns)  # sixteen sums for each of 128 threads
        return cls(rows, columns, max(16, 128 // groups), groups)

    def padded(self, B: int) -> int:
        return -(-B // self.rows) * self.rows

    def grid(self, B: int, columns: int) -> tuple[int, int]:
        return -(-columns // self.columns), -(-B // self.rows)


class FusedScan(NativeScan):
    """`NativeScan` for tensors on a GPU: the same arguments and results, but in_bf16 raises ValueError."""

    require = staticmethod(require_fused)

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        history: Tensor,
        W_h: Tensor,
        W_g2: Tensor | None,
        factors: Tensor | None,
        pooling: str,
        activation: str,
        max_norm: float | None,
        in_bf16: bool,
        training: bool,
    ) -> tuple[Tensor, Tensor]:
        from hornn.kernels.fused_steps import scan_step

        (K, B, H), T = history.shape, len(u)
        tiles = Tiles.of(B)
        P = tiles.padded(B)
        keep = training and any(ctx.needs_input_grad)
        past = history.flip(0)
        states, packed = u.new_empty(K + T, B, H), u.new_empty(K + T, H, P)
        states[:K] = past
        packed[:K, :, :B] = past.mT
        most, gated = keep and pooling == "max", keep and pooling == "gated"
        winners = u.new_empty((T if most else 0, B, H), dtype=torch.int8)
        gates, taps = (u.new_empty(T if gated else 0, K, B, H) for _ in range(2))
        early = u.new_empty(2, 2 * K - 2 if pooling == "gated" else K - 1, B, H)
        W_h = W_h if factors is None else factors.view(-1, 1, 1) * W_h
        weights = transpose(W_h), None if W_g2 is None else transpose(W_g2)
        given = u.contiguous(), states, packed, *weights, early, winners, gates, taps
        for t in range(-1 if K > 1 else 0, T):
            scan_step[*tiles.grid(B, H), K](*given, t, B, H, P, K, pooling, activation, keep, *tiles)
        if keep:
            ctx.save_for_backward(states, W_h, W_g2, factors, winners, gates, taps)
            ctx.constants = K, pooling, activation, max_norm, tiles
        return states[K:], states[T:].flip(0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        states, W_h, W_g2, factors, winners, gates, taps = ctx.saved_tensors
        K, pooling, activation, max_norm, tiles = ctx.constants
        _, needs_history, *needs_weights = ctx.needs_input_grad[:4]
        grads = grad_y.contiguous(), grad_last.contiguous()
        if max_norm is None:
            kept = (W_h.contiguous(), None if W_g2 is None else W_g2.contiguous(), winners, gates, taps)
            u, history = back(*grads, states, *kept, pooling, activation, tiles, needs_history)  # type: ignore[arg-type]
        else:
            u, history = back_bounded(*grads, states, W_h[0], activation, max_norm, tiles, needs_history)
        of_taps = u.unsqueeze(0)
        W_h = W_g2 = None
        if any(needs_weights):
            if pooling == "max":
                which = torch.arange(1, K + 1, dtype=torch.int8, device=u.device)
                of_taps = of_taps * (winners == which.view(-1, 1, 1, 1))
            elif pooling == "gated":
                H = states.size(-1)
                of_gates = u[..., H:].unflatten(-1, (K, H)).movedim(-2, 0)
                of_taps = u[..., :H] * gates.movedim(1, 0)
                W_g2 = products_over_time(of_gates, states, K)
            W_h = products_over_time(of_taps.expand(K, -1, -1, -1), states, K)
            W_h = W_h if factors is None else factors.view(-1, 1, 1) * W_h
        needed = zip(ctx.needs_input_grad, (u, history, W_h, W_g2), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None, None, None, None


def transpose(W: Tensor) -> Tensor:
    return W.mT.contiguous()


def back(
    grad_y: Tensor,
    grad_last: Tensor,
    states: Tensor,
    W_h: Tensor,
    W_g2: Tensor | None,
    winners: Tensor,
    gates: Tensor,
    taps: Tensor,
    pooling: str,
    activation: str,
    tiles: Tiles,
    needs_history: bool,
) -> tuple[Tensor, Tensor]:
    """The gradients of u and of the history, which is empty unless needed."""
    from hornn.kernels.fused_steps import scan_step_back

    (K, B, H), T = grad_last.shape, len(grad_y)
    P = tiles.padded(B)
    sources = {"sum": 1, "max": K, "gated": 2 * K}[pooling]
    packed = states.new_empty(sources, T, H, P)
    grad_u = states.new_empty(T, B, (1 + K) * H if pooling == "gated" else H)
    grad_history, early = torch.empty_like(grad_last), states.new_zeros(2, K - 1, B, H)
    given = grad_y, grad_last, states, packed, W_h, W_g2, early, winners, gates, taps, grad_u, grad_history
    for s in range(T - 1, -K - 1 if needs_history else -1, -1):
        scan_step_back[*tiles.grid(B, H), K](*given, s, T, B, H, P, K, pooling, activation, *tiles)
    return grad_u, grad_history


def back_bounded(
    grad_y: Tensor,
    grad_last: Tensor,
    states: Tensor,
    W_h: Tensor,
    activation: str,
    max_norm: float,
    tiles: Tiles,
    needs_history: bool,
) -> tuple[Tensor, Tensor]:
    """The gradients of u and of the history for sum pooling of one state, with a bound on what flows back.

    What flows back into a state has norm `max_norm` at most.

    r_s = W_h^T dz_{s+1} flows back into h_s. With its bound c_s = min(1, max_norm / |r_s|) and the gradient g_s that
    is given for h_s,

        dz_s = p_s + c_s q_s,   p_s = f'(z_s) g_s,   q_s = f'(z_s) r_s
        r_s = W_h^T p_{s+1} + c_{s+1} W_h^T q_{s+1}

    so that the step that computes r_s needs only the bound of the one before it. The products with all p are one.
    """
    from hornn.kernels.fused_steps import bounded_step_back

    T, B, H = grad_y.shape
    P = tiles.padded(B)
    y = states[1:]
    f = {"sigmoid": lambda: y * (1 - y), "tanh": lambda: 1 - y * y, "relu": lambda: y > 0}[activation]()
    grad_u = grad_y * f
    grad_u[-1] += grad_last[0] * f[-1]
    known, q = grad_u @ W_h, torch.empty_like(states)
    packed = states.new_empty(T, H, P)
    grid = tiles.grid(B, H)
    squares = states.new_empty(1 + T, grid[0] * grid[1])
    given = known, states, packed, W_h.contiguous(), q, squares, float(max_norm)
    for s in range(T - 2, -2 if needs_history else -1, -1):
        bounded_step_back[grid](*given, s, T, B, H, P, activation, *tiles)
    bounds = (max_norm / squares.sum(1).sqrt()).clamp(max=1.0).view(-1, 1, 1)
    grad_u[:-1].addcmul_(bounds[1:-1], q[1:-1])
    return grad_u, bounds[:1] * q[:1]


def products_over_time(grads: Tensor, states: Tensor, K: int) -> Tensor:
    """The gradients (K, N, H) of W_n: the sum over t and b of g_tb h_{t-n,b}^T, for g (K, T, B, N) and all states."""
    T, B = grads.shape[1:3]
    past = states[: K + T - 1].flatten(0, 1).unfold(0, T * B, B).movedim(-1, 1)  # (K, T B, H), oldest first
    return grads.flatten(1, 2).mT @ (past.flip(0) if K > 1 else past)
