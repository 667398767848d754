"""Products of factors in 16 bits, on CPUs that multiply these faster than fp32: AMX, AVX-512 FP16, AVX-512 BF16."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from hornn.kernels.library import operators, why_not

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def multiplies_in(dtype: torch.dtype) -> bool:
    """Whether `reduced_product` is there for this dtype and machine, and as fast as torch's own product.

    In bf16 torch is faster where the machine has AMX and the compiler did not know it.
    """
    if dtype not in DTYPES.values() or why_not() is not None:
        return False
    if dtype == torch.float16:
        return bool(operators().has_fp16())
    return bool(operators().has_bf16()) and (operators().has_amx() or not torch.cpu._is_amx_tile_supported())


def reduced_product(
    left: Tensor, right: Tensor, out: Tensor, dtype: torch.dtype, factor: float = 1.0, add: bool = False
) -> Tensor:
    """out (M, N) = (or, to `add`, +=) factor left (M, K) right (K, N), its factors rounded to `dtype`, fp16 or bf16.

    In fp16 |error| is about 1e-3 of a sum, in bf16 3e-3. Sums are in fp32. But in fp16 32 products at a time are first
    added up in fp16: none of these sums may exceed 65,504. Where K is above 640, the sum is taken in pieces of at most
    640 products, and rounded to out's dtype after each of them.
    left and out are in fp32 or `dtype`, right is in fp32, out contiguous. ValueError for tensors that do not fit.
    """
    (M, K), (rows, N) = left.shape, right.shape
    known = {left.dtype, out.dtype} <= {torch.float32, dtype} and right.dtype == torch.float32
    if dtype not in DTYPES.values() or not known or any(x.device.type != "cpu" for x in (left, right, out)):
        raise ValueError(
            f"products in {dtype}, fp16 or bf16, take fp32 or that dtype on the CPU, got {left.dtype}, "
            f"{right.dtype} and {out.dtype}"
        )
    if rows != K or out.shape != (M, N) or not K or not out.is_contiguous():
        raise ValueError(
            f"(M, K) times (K, N) gives a contiguous (M, N), got {tuple(left.shape)}, {tuple(right.shape)} and "
            f"{tuple(out.shape)}"
        )
    in_bf16 = dtype == torch.bfloat16
    operators().reduced_product(left, right, out, in_bf16, factor, add, torch.get_num_threads())
    return out


def product_over_time(g: Tensor, states: Tensor, in_bf16: bool, out: Tensor | None = None) -> Tensor:
    """The gradient (N, H) of a matrix: the sum over t and b of g_tb states_tb^T, for g (T, B, N), states (T, B, H)."""
    left, right = g.flatten(0, 1).mT, states.flatten(0, 1)
    out = g.new_empty(g.size(-1), states.size(-1)) if out is None else out
    if in_bf16:
        return reduced_product(left, right, out, torch.bfloat16)
    return torch.mm(left, right, out=out)


class LinearsInBf16(TorchFunctionMode):
    """Where this is entered, `F.linear` computes as `Bf16Linear`: a cell is written for fp32 alone."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is F.linear:
            return linear_in_bf16(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def linear_in_bf16(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # `F.linear`'s names
    return Bf16Linear.apply(input, weight, bias)


class Bf16Linear(torch.autograd.Function):
    """`F.linear`, x W^T + b for x (.., I), W (O, I), b (O): all factors, of the gradients too, are rounded to bf16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
        rows = x.flatten(0, -2)
        ctx.save_for_backward(rows, W)
        y = reduced_product(rows, W.mT, x.new_empty(len(rows), len(W)), torch.bfloat16)
        if b is not None:
            y += b
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor | None, ...]:
        rows, W = ctx.saved_tensors
        of_x, of_W, of_b = ctx.needs_input_grad
        g = grad_y.flatten(0, -2)
        grad_x = reduced_product(g, W, rows.new_empty(rows.shape), torch.bfloat16) if of_x else None
        grad_W = reduced_product(g.mT, rows, W.new_empty(W.shape), torch.bfloat16) if of_W else None
        grad_x = None if grad_x is None else grad_x.view(*grad_y.shape[:-1], -1)
        return grad_x, grad_W, g.sum(0) if of_b else None
