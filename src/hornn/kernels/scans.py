"""The native time loops over a chunk, as functions that torch can differentiate: two passes in C++ each."""

from typing import Any

import torch
from torch import Tensor

from hornn.cells.base import ACTIVATIONS
from hornn.checks import require_choice
from hornn.kernels.library import operators, require_floats
from hornn.kernels.reduced import product_over_time

POOLINGS = ("sum", "max", "gated")


def require_native(in_bf16: bool, **tensors: Tensor | None) -> None:
    """Raise ValueError unless the kernels of a CPU take these tensors."""
    require_floats(**tensors)


class NativeScan(torch.autograd.Function):
    """The scan of the Elman network and of the higher-order cells over a chunk.

        sum     h_t = f(u_t + sum_{n=1..K} W_h[n-1] h_{t-n})
        max     h_t = f(u_t + max_{n=1..K} W_h[n-1] h_{t-n})         (element-wise; the first of equals)
        gated   h_t = f(u_t + sum_{n=1..K} r_n * W_h[n-1] h_{t-n}),   r_n = sigmoid(u_tn + W_g2[n-1] h_{t-n})

    `apply(u, history, W_h, W_g2, pooling, activation, max_norm=None, in_bf16=False, factors=None)` -> y (T, B, H) and
    the last states (K, B, H), newest first. y is a view, which nothing may change in place.
    u (T, B, H) is what `project_input` gives; for gated pooling (T, B, (1 + K) H), the state's part, then the gates'
    for n = 1..K. history (K, B, H), newest first; W_h (K, H, H); W_g2 (K, H, H), None unless gated. Where `factors`
    (K), constants, are given, W_h[n-1] counts factors[n-1] times: FOFE is sum pooling with the factors alpha^n. Order 1
    is the Elman network. `max_norm`, for sum pooling of one state, bounds the gradient
    that flows back into each state (`hornn.scan.scan`); `in_bf16` is as in `hornn.kernels.table.run_native`.

    The backward pass runs back through time for the gradients of the states alone; each weight's gradient is then
    one product over all steps and columns. Where no gradient is wanted nothing is kept.
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there
    are no kernels.
    """

    require = staticmethod(require_native)

    @classmethod
    def apply(
        cls,
        u: Tensor,
        history: Tensor,
        W_h: Tensor,
        W_g2: Tensor | None,
        pooling: str,
        activation: str,
        max_norm: float | None = None,
        in_bf16: bool = False,
        factors: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        require_choice("pooling", pooling, POOLINGS)
        require_choice("activation", activation, ACTIVATIONS)
        cls.require(in_bf16, u=u, history=history, W_h=W_h, W_g2=W_g2, factors=factors)
        K, B, H = history.shape if history.ndim == 3 else (0, 0, 0)
        G = (1 + K) * H if pooling == "gated" else H
        expected: dict[str, tuple[int, ...]] = {"u": (len(u), B, G), "history": (K, B, H), "W_h": (K, H, H)}
        if pooling == "gated":
            expected["W_g2"] = (K, H, H)
        expected |= {} if factors is None else {"factors": (K,)}
        given = {"u": u, "history": history, "W_h": W_h, "W_g2": W_g2, "factors": factors}
        found = {name: tuple(tensor.shape) for name, tensor in given.items() if tensor is not None}
        if found != expected or 0 in (*expected["u"], K):
            raise ValueError(
                "a native scan takes u (T, B, G), history (K, B, H), W_h (K, H, H), all sizes >= 1, and for gated "
                f"pooling, with G = (1 + K) H instead of H, W_g2 (K, H, H), and factors (K) or none; got {pooling} "
                f"pooling with {found}"
            )
        if max_norm is not None and (pooling != "sum" or K > 1):
            raise ValueError(
                f"a native scan bounds the gradient of one state, with sum pooling, got {pooling} of {K}"
            )
        result: tuple[Tensor, Tensor] = super().apply(
            u, history, W_h, W_g2, factors, pooling, activation, max_norm, in_bf16, torch.is_grad_enabled()
        )
        return result

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
        history, W_h = history.contiguous(), W_h.contiguous()
        W_g2, factors = (None if each is None else each.contiguous() for each in (W_g2, factors))
        keep = training and any(ctx.needs_input_grad)
        states, *kept = operators().scan(
            u.contiguous(),
            history,
            W_h,
            W_g2,
            factors,
            pooling,
            activation,
            keep,
            in_bf16,
            torch.get_num_threads(),
        )
        if keep:
            ctx.save_for_backward(states, W_h, W_g2, factors, *kept)
            ctx.constants = pooling, activation, max_norm
            ctx.in_bf16 = in_bf16
        return states[len(history) :], states[len(u) :].flip(0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        _, needs_history, *needs_weights = ctx.needs_input_grad[:4]
        u, history, W_h, W_g2 = operators().scan_backward(
            grad_y.contiguous(),
            grad_last.contiguous(),
            *ctx.saved_tensors,
            *ctx.constants,
            needs_history,
            any(needs_weights),
            ctx.in_bf16,
            torch.get_num_threads(),
        )
        needed = zip(ctx.needs_input_grad, (u, history, W_h, W_g2), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None, None, None, None


class NativeLstm(torch.autograd.Function):
    """The scan of the LSTM (`hornn.cells.lstm.Lstm`, `Lstmp`) over a chunk.

    `apply(u, r, c, W_h, P=None, max_norm=None, in_bf16=False)` -> y (T, B, R), the last r (B, R) and the last c (B, H).
    u (T, B, 4 H) is what `project_input` gives and W_h (4 H, R), both with the blocks i, f, g, o; P (R, H) projects
    what is fed back, without it R = H; r (B, R) and c (B, H) are the state before the chunk. `max_norm` bounds the
    gradients that flow back into each r and each c (`hornn.scan.scan`), `in_bf16` is as in
    `hornn.kernels.table.run_native`. The backward pass runs back through time for the gradients of the
    states alone; the gradients of W_h and P are then one product each over all steps and columns.
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there are no
    kernels.
    """

    require = staticmethod(require_native)

    @classmethod
    def apply(
        cls,
        u: Tensor,
        r: Tensor,
        c: Tensor,
        W_h: Tensor,
        P: Tensor | None = None,
        max_norm: float | None = None,
        in_bf16: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        cls.require(in_bf16, u=u, r=r, c=c, W_h=W_h, P=P)
        B, H = c.shape if c.ndim == 2 else (0, 0)
        R = H if P is None else len(P)
        expected = {"u": (len(u), B, 4 * H), "r": (B, R), "c": (B, H), "W_h": (4 * H, R), "P": (R, H)}
        given = {"u": u, "r": r, "c": c, "W_h": W_h, "P": P}
        found = {name: tuple(tensor.shape) for name, tensor in given.items() if tensor is not None}
        if found != {name: expected[name] for name in found} or 0 in (*expected["u"], R):
            raise ValueError(
                "a native LSTM takes u (T, B, 4 H), r (B, R), c (B, H), W_h (4 H, R) and P (R, H), or none and R = H, "
                f"all sizes >= 1; got {found}"
            )
        result: tuple[Tensor, Tensor, Tensor] = super().apply(
            u, r, c, W_h, P, max_norm, in_bf16, torch.is_grad_enabled()
        )
        return result

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
        r, c, W_h = r.contiguous(), c.contiguous(), W_h.contiguous()
        P = None if P is None else P.contiguous()
        keep = training and any(ctx.needs_input_grad)
        y, cells, gates = operators().lstm(
            u.contiguous(), r, c, W_h, P, keep, in_bf16, torch.get_num_threads()
        )
        if keep:
            ctx.save_for_backward(y, r, c, W_h, P, cells, gates)
            ctx.constants = max_norm, in_bf16
        return y, y[-1].clone(), cells[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_r: Tensor, grad_c: Tensor) -> tuple[Tensor | None, ...]:
        y, r, c, W_h, P, cells, gates = ctx.saved_tensors
        grads = [grad.contiguous() for grad in (grad_y, grad_r, grad_c)]
        u, r_0, c_0, product = operators().lstm_backward(
            *grads, c, W_h, P, cells, gates, *ctx.constants, torch.get_num_threads()
        )
        weight = projection = None
        _, in_bf16 = ctx.constants
        if ctx.needs_input_grad[3]:
            weight = product_over_time(u, torch.cat([r.unsqueeze(0), y[:-1]]), in_bf16)
        if ctx.needs_input_grad[4]:
            projection = product_over_time(product, gates[:, :, 3] * cells.tanh(), in_bf16)
        needed = zip(ctx.needs_input_grad, (u, r_0, c_0, weight, projection), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None


class NativeGru(torch.autograd.Function):
    """The scan of the GRU (`hornn.cells.gru.Gru`) over a chunk.

    `apply(u, h, W_h, b_n, reset_after=True, max_norm=None, in_bf16=False)` -> y (T, B, H) and the last h (B, H). u (T,
    B, 3 H) is what `project_input` gives and W_h (3 H, H), both with the blocks r, z, n; b_n is (H), only where
    `reset_after`, or None; h (B, H) is the state before the chunk. `max_norm` bounds the gradient that flows back into
    each h (`hornn.scan.scan`), `in_bf16` is as in `hornn.kernels.table.run_native`. The backward pass runs back through
    time for the gradients of the states alone; the gradient of W_h is then two products over all steps and columns.
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there are no
    kernels.
    """

    require = staticmethod(require_native)

    @classmethod
    def apply(
        cls,
        u: Tensor,
        h: Tensor,
        W_h: Tensor,
        b_n: Tensor | None = None,
        reset_after: bool = True,
        max_norm: float | None = None,
        in_bf16: bool = False,
    ) -> tuple[Tensor, Tensor]:
        cls.require(in_bf16, u=u, h=h, W_h=W_h, b_n=b_n)
        B, H = h.shape if h.ndim == 2 else (0, 0)
        expected = {"u": (len(u), B, 3 * H), "h": (B, H), "W_h": (3 * H, H), "b_n": (H,)}
        found = {"u": tuple(u.shape), "h": tuple(h.shape), "W_h": tuple(W_h.shape)}
        found["b_n"] = (H,) if b_n is None else tuple(b_n.shape)
        if found != expected or 0 in expected["u"] or (b_n is not None and not reset_after):
            raise ValueError(
                "a native GRU takes u (T, B, 3 H), h (B, H), W_h (3 H, H), all sizes >= 1, and b_n (H) or none, none "
                f"without reset_after; got {found}"
            )
        result: tuple[Tensor, Tensor] = super().apply(
            u, h, W_h, b_n, reset_after, max_norm, in_bf16, torch.is_grad_enabled()
        )
        return result

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
        u, h, W_h = u.contiguous(), h.contiguous(), W_h.contiguous()
        b_n = None if b_n is None else b_n.contiguous()
        keep, threads = training and any(ctx.needs_input_grad), torch.get_num_threads()
        if reset_after:
            y, gates = operators().gru(u, h, W_h, b_n, keep, in_bf16, threads)
        else:
            y, gates = operators().gru_early(u, h, W_h, keep, in_bf16, threads)
        if keep:
            ctx.save_for_backward(y, h, W_h, gates)
            ctx.constants = reset_after, max_norm, in_bf16
        return y, y[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        y, h, W_h, gates = ctx.saved_tensors
        reset_after, max_norm, in_bf16 = ctx.constants
        given = (grad_y.contiguous(), grad_last.contiguous(), y, h, W_h, gates, max_norm, in_bf16)
        before = torch.cat([h.unsqueeze(0), y[:-1]])
        if reset_after:  # n reads the product of h, times r
            u, product, h_0 = operators().gru_backward(*given, torch.get_num_threads())
            read = before
        else:  # n reads the product of r * h
            u, h_0 = operators().gru_early_backward(*given, torch.get_num_threads())
            product, read = u[:, :, 2 * len(W_h) // 3 :], gates[:, :, 0] * before
        weight = None
        if ctx.needs_input_grad[2]:
            weight, both = torch.empty_like(W_h), 2 * len(W_h) // 3
            product_over_time(u[:, :, :both], before, in_bf16, out=weight[:both])
            product_over_time(product, read, in_bf16, out=weight[both:])
        bias = product.sum((0, 1)) if ctx.needs_input_grad[3] else None
        needed = zip(ctx.needs_input_grad, (u, h_0, weight, bias), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None, None


class NativeLeak(torch.autograd.Function):
    """The scan of the context of the SCRN (`hornn.cells.scrn.Scrn`) over a chunk: s_t = kept s_{t-1} + (1 - kept) b_t.

    `apply(b, s, kept, max_norm=None)` -> s (T, B, C) and the last of them (B, C). b (T, B, C); s (B, C) is the state
    before the chunk; kept (C). `max_norm` bounds the gradient that flows back into each state (`hornn.scan.scan`).
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there are no
    kernels.
    """

    require = staticmethod(require_native)

    @classmethod
    def apply(
        cls, b: Tensor, s: Tensor, kept: Tensor, max_norm: float | None = None
    ) -> tuple[Tensor, Tensor]:
        cls.require(False, b=b, s=s, kept=kept)
        expected = {"b": (len(b), *s.shape), "s": (*s.shape[:1], *kept.shape), "kept": kept.shape}
        found = {"b": tuple(b.shape), "s": tuple(s.shape), "kept": tuple(kept.shape)}
        if b.ndim != 3 or not len(b) or found != expected:
            raise ValueError(f"a native leak takes b (T, B, C), s (B, C) and kept (C), T >= 1; got {found}")
        result: tuple[Tensor, Tensor] = super().apply(b, s, kept, max_norm)
        return result

    @staticmethod
    def forward(
        ctx: Any, b: Tensor, s: Tensor, kept: Tensor, max_norm: float | None
    ) -> tuple[Tensor, Tensor]:
        b, s, kept = b.contiguous(), s.contiguous(), kept.contiguous()
        y = operators().leak(b, s, kept)
        ctx.save_for_backward(b, s, kept, y)
        ctx.max_norm = max_norm
        return y, y[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        b, s, kept, y = ctx.saved_tensors
        whole, grad_s = operators().leak_backward(
            grad_y.contiguous(), grad_last.contiguous(), kept, ctx.max_norm
        )
        grad_kept = None
        if ctx.needs_input_grad[2]:
            grad_kept = (whole * (torch.cat([s.unsqueeze(0), y[:-1]]) - b)).sum((0, 1))
        return whole * (1 - kept), grad_s, grad_kept, None
