"""The time loops of the LSTM, of the GRU and of slow units on a GPU: see `hornn.kernels.fused`."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.kernels.fused import Tiles, require_fused
from hornn.kernels.scans import NativeGru, NativeLeak, NativeLstm

GATED_COLUMNS = 16  # four units of four gates each
MOST_AT_ONCE = 1024  # slow units in one program


class FusedLstm(NativeLstm):
    """`NativeLstm` for tensors on a GPU: the same, but P and in_bf16 raise ValueError."""

    require = staticmethod(require_fused)

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        r: Tensor,
        c: Tensor,
        W_h: Tensor,
        P: Tensor | None,
        max_norm: float | None,
        in_bf16: bool,
        training: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from hornn.kernels.fused_gates import lstm_step

        if P is not None:
            raise ValueError("there is no kernel of a GPU for an LSTM with a projection")
        (B, H), T = c.shape, len(u)
        tiles = Tiles.of(B, GATED_COLUMNS)
        keep = training and any(ctx.needs_input_grad)
        states, packed = begin(r, T, tiles)
        cells, gates = u.new_empty(1 + T, B, H), u.new_empty(T if keep else 0, 4, B, H)
        cells[0] = c
        given = u.contiguous(), states, cells, packed, side_by_side(W_h, 4), gates
        for t in range(T):
            lstm_step[tiles.grid(B, 4 * H)](*given, t, B, H, tiles.padded(B), keep, *tiles)
        if keep:
            ctx.save_for_backward(states, cells, W_h, gates)
            ctx.max_norm = max_norm
        return states[1:], states[-1].clone(), cells[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_r: Tensor, grad_c: Tensor) -> tuple[Tensor | None, ...]:
        from hornn.kernels.fused_gates import lstm_step_back

        states, cells, W_h, gates = ctx.saved_tensors
        T, B, H = grad_y.shape
        tiles = Tiles.of(B)
        P, grid = tiles.padded(B), tiles.grid(B, H)
        u, packed = states.new_empty(T, B, 4 * H), states.new_empty(T, 4 * H, P)
        r_0, flows = torch.empty_like(states[0]), torch.empty_like(states[0])
        c_0 = grad_c.clone(memory_format=torch.contiguous_format)
        squares = states.new_empty(2, 2 + T, grid[0] * grid[1])
        given = grad_y.contiguous(), grad_r.contiguous(), cells, gates, packed, W_h.contiguous(), u, r_0, c_0
        bound = 0.0 if ctx.max_norm is None else float(ctx.max_norm)
        parts = [(True, True)] if ctx.max_norm is None else [(True, False), (False, True)]
        for s in range(T - 1, -2, -1):
            for part in parts:
                lstm_step_back[grid](*given, flows, squares, bound, s, T, B, H, P, *part, *tiles)
        W = None
        if ctx.needs_input_grad[3]:
            W = u.flatten(0, 1).mT @ states[:-1].flatten(0, 1)
        needed = zip(ctx.needs_input_grad, (u, r_0, c_0, W), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None, None


class FusedGru(NativeGru):
    """`NativeGru` for tensors on a GPU: the same, but reset_after=False, max_norm and in_bf16 raise ValueError."""

    require = staticmethod(require_fused)

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        h: Tensor,
        W_h: Tensor,
        b_n: Tensor | None,
        reset_after: bool,
        max_norm: float | None,
        in_bf16: bool,
        training: bool,
    ) -> tuple[Tensor, Tensor]:
        from hornn.kernels.fused_gates import gru_step

        if not reset_after or max_norm is not None:
            raise ValueError("the kernels of a GPU run a GRU with reset_after and without a bound")
        (B, H), T = h.shape, len(u)
        tiles = Tiles.of(B, GATED_COLUMNS)
        keep = training and any(ctx.needs_input_grad)
        states, packed = begin(h, T, tiles)
        gates = u.new_empty(T if keep else 0, 4, B, H)
        b_n = None if b_n is None else b_n.contiguous()
        given = u.contiguous(), states, packed, side_by_side(W_h, 3), b_n, gates
        for t in range(T):
            gru_step[tiles.grid(B, 4 * H)](*given, t, B, H, tiles.padded(B), keep, *tiles)
        if keep:
            ctx.save_for_backward(states, W_h, gates)
        return states[1:], states[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        from hornn.kernels.fused_gates import gru_step_back

        states, W_h, gates = ctx.saved_tensors
        T, B, H = grad_y.shape
        tiles = Tiles.of(B)
        P = tiles.padded(B)
        u, packed = states.new_empty(T, B, 3 * H), states.new_empty(T, 3 * H, P)
        product, h_0 = torch.empty_like(states[1:]), grad_last.clone(memory_format=torch.contiguous_format)
        given = grad_y.contiguous(), states, gates, packed, W_h.contiguous(), u, product, h_0
        for s in range(T - 1, -2, -1):
            gru_step_back[tiles.grid(B, H)](*given, s, T, B, H, P, *tiles)
        W = None
        if ctx.needs_input_grad[2]:
            W, before = torch.empty_like(W_h), states[:-1].flatten(0, 1)
            torch.mm(u.flatten(0, 1)[:, : 2 * H].mT, before, out=W[: 2 * H])
            torch.mm(product.flatten(0, 1).mT, before, out=W[2 * H :])
        b_n = product.sum((0, 1)) if ctx.needs_input_grad[3] else None
        needed = zip(ctx.needs_input_grad, (u, h_0, W, b_n), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None, None


def begin(h: Tensor, T: int, tiles: Tiles) -> tuple[Tensor, Tensor]:
    """Memory for 1 + T states, (1 + T, B, H) and packed (1 + T, H, P). It holds h, the state before the chunk."""
    B, H = h.shape
    states, packed = h.new_empty(1 + T, B, H), h.new_empty(1 + T, H, tiles.padded(B))
    states[0] = h
    packed[0, :, :B] = h.mT
    return states, packed


def side_by_side(W_h: Tensor, gates: int) -> Tensor:
    """(gates H, H) -> (H, 4 H): the columns of the gates of a unit side by side, zeros where there are but three."""
    H = W_h.size(-1)
    return F.pad(W_h.unflatten(0, (gates, H)).permute(2, 1, 0), (0, 4 - gates)).contiguous()


class FusedLeak(NativeLeak):
    """`NativeLeak` for tensors on a GPU: the same arguments and results. One kernel is a whole scan."""

    require = staticmethod(require_fused)

    @staticmethod
    def forward(
        ctx: Any, b: Tensor, s: Tensor, kept: Tensor, max_norm: float | None
    ) -> tuple[Tensor, Tensor]:
        from hornn.kernels.fused_gates import leak

        b, s, kept = b.contiguous(), s.contiguous(), kept.contiguous()
        y, size = torch.empty_like(b), s.numel()
        if size:
            block = min(MOST_AT_ONCE, 1 << (size - 1).bit_length())
            leak[(-(-size // block),)](b, s, kept, y, len(b), size, len(kept), block)
        ctx.save_for_backward(b, s, kept, y)
        ctx.max_norm = max_norm
        return y, y[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        from hornn.kernels.fused_gates import leak_back

        b, s, kept, y = ctx.saved_tensors
        whole, grad_s, size = torch.empty_like(b), torch.empty_like(s), s.numel()
        bounded = ctx.max_norm is not None
        if size:
            block = 1 << (size - 1).bit_length()
            block = block if bounded else min(MOST_AT_ONCE, block)
            given = grad_y.contiguous(), grad_last.contiguous(), kept, whole, grad_s
            how = float(ctx.max_norm or 0.0), len(b), size, len(kept), bounded, block
            leak_back[(-(-size // block),)](*given, *how, num_warps=min(16, max(4, block // 256)))
        grad_kept = None
        if ctx.needs_input_grad[2]:
            grad_kept = (whole * (torch.cat([s.unsqueeze(0), y[:-1]]) - b)).sum((0, 1))
        return whole * (1 - kept), grad_s, grad_kept, None
