"""Products of factors in 16 bits, on CPUs that multiply these at twice the rate of fp32: AVX-512 FP16, AVX-512 BF16."""

import torch
from torch import Tensor

from hornn.kernels.library import operators, why_not

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def multiplies_in(dtype: torch.dtype) -> bool:
    """Whether `reduced_product` is there for this dtype and machine, and as fast as torch's own product.

    In bf16 torch is faster where the machine has AMX.
    """
    if dtype not in DTYPES.values() or why_not() is not None:
        return False
    if dtype == torch.float16:
        return bool(operators().has_fp16())
    return bool(operators().has_bf16()) and not torch.cpu._is_amx_tile_supported()


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
