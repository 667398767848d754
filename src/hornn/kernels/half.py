"""Products in fp16, on CPUs that multiply there at twice the rate of fp32: AVX-512 FP16."""

import torch
from torch import Tensor

from hornn.kernels.library import operators, why_not

DTYPES = (torch.float32, torch.float16)


def has_fp16() -> bool:
    """Whether this machine multiplies in fp16, and the native kernels are there."""
    return why_not() is None and bool(operators().has_fp16())


def half_product(left: Tensor, right: Tensor, out: Tensor, factor: float = 1.0) -> Tensor:
    """out (M, N) = factor left (M, K) right (K, N), its factors rounded to fp16: |error| is about 1e-3 of a sum.

    Sums of 32 products are added up in fp16, the sums of these in fp32; none of the former may exceed 65,504. Where
    K is above 640, the sum is taken in pieces of at most 640 products, and rounded to out's dtype after each of them:
    with an out in fp16, partial sums are in fp16, too.
    left and out are fp32 or fp16, right is fp32, out contiguous. ValueError for tensors that do not fit.
    """
    (M, K), (rows, N) = left.shape, right.shape
    known = left.dtype in DTYPES and out.dtype in DTYPES and right.dtype == torch.float32
    if not known or any(x.device.type != "cpu" for x in (left, right, out)):
        raise ValueError(
            f"products in fp16 take fp32 or fp16 on the CPU, got {left.dtype}, {right.dtype} and {out.dtype}"
        )
    if rows != K or out.shape != (M, N) or not K or not out.is_contiguous():
        raise ValueError(
            f"(M, K) times (K, N) gives a contiguous (M, N), got {tuple(left.shape)}, {tuple(right.shape)} and "
            f"{tuple(out.shape)}"
        )
    operators().half_product(left, right, out, factor, torch.get_num_threads())
    return out
