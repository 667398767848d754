"""Passes over large matrices on a GPU, in Triton: soft-max and cross entropy over logits, and the update of a weight.

Imported where they run, as Triton is not installed everywhere. Nothing waits for the GPU.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

WORDS = 65_536  # of a row of logits, at most: one program holds a row in its registers
NUMBERS = 4096  # of a weight, that one program updates


@triton.jit
def row_of_logits(logits, bias, targets, nll, scale, V, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    """-log softmax(z)_target of one row z = logits [+ bias], which its gradient overwrites."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    inside = j < V
    z = tl.load(logits + row * V + j, mask=inside, other=-float("inf")).to(tl.float32)
    if HAS_BIAS:
        z += tl.load(bias + j, mask=inside, other=0.0)
    target = tl.load(targets + row)
    kept = target >= 0
    most = tl.max(z, 0)
    e = tl.exp(z - most)
    total = tl.sum(e, 0)
    margin = most - tl.sum(tl.where(j == target, z, 0.0), 0)
    tl.store(nll + row, tl.where(kept, margin + tl.log(total), 0.0))
    grad = (e / total - tl.where(j == target, 1.0, 0.0)) * scale
    grad = tl.where(kept, grad, 0.0)
    tl.store(logits + row * V + j, grad.to(logits.dtype.element_ty), mask=inside)


def cross_entropy_(
    logits: Tensor, bias: Tensor | None, targets: Tensor, scale: float
) -> tuple[Tensor, Tensor | None]:
    """`hornn.kernels.cross_entropy.torch_cross_entropy_` of contiguous logits (N, V) in fp32 or bf16, V <= WORDS.

    The gradient of the bias is the sum of the gradients of the logits as they are rounded.
    """
    N, V = logits.shape
    nll = torch.empty(N, dtype=torch.float32, device=logits.device)
    block = max(16, triton.next_power_of_2(V))
    warps = min(32, max(1, block // 512))
    row_of_logits[(N,)](
        logits, bias, targets, nll, scale, V, HAS_BIAS=bias is not None, BLOCK=block, num_warps=warps
    )
    total = nll.sum(dtype=torch.float64)
    return total, None if bias is None else logits.sum(0, dtype=bias.dtype)


@triton.jit
def numbers_of_weight(
    weight, momentum, grad, rate, factor, decay, mu, size, HAS_MOMENTUM: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    lr = tl.load(rate)
    step = -lr * (tl.load(grad + at, mask=inside) * tl.load(factor))
    w = tl.load(weight + at, mask=inside) * (1 - lr * decay)
    if HAS_MOMENTUM:
        step += mu * tl.load(momentum + at, mask=inside)
        tl.store(momentum + at, step, mask=inside)
    tl.store(weight + at, w + step, mask=inside)


def momentum_update_(
    weight: Tensor,
    momentum: Tensor | None,
    grad: Tensor,
    rate: Tensor,
    factor: Tensor,
    mu: float,
    decay: float,
) -> None:
    """M <- mu M - lr c g, w <- (1 - lr gamma) w + M, for contiguous fp32 tensors of one size.

    rate: lr, and factor: c that the gradient is multiplied by, scalars of fp32 on the GPU; decay: gamma. Without
    `momentum` M is the step alone.
    """
    grid = (triton.cdiv(weight.numel(), NUMBERS),)
    held = weight if momentum is None else momentum
    numbers_of_weight[grid](
        weight, held, grad, rate, factor, decay, mu, weight.numel(), momentum is not None, NUMBERS
    )


@triton.jit
def numbers_and_average(weight, average, grad, rate, factor, mu, decay, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    w = tl.load(weight + at, mask=inside)
    g = tl.load(grad + at, mask=inside) * tl.load(factor) + decay * w
    w -= tl.load(rate) * g
    a = tl.load(average + at, mask=inside)
    tl.store(weight + at, w, mask=inside)
    tl.store(average + at, a + (w - a) * tl.load(mu), mask=inside)


def averaged_update_(
    weight: Tensor,
    average: Tensor,
    grad: Tensor,
    rate: Tensor,
    factor: Tensor,
    mu: Tensor,
    decay: float,
) -> None:
    """w <- w - lr (c g + gamma w), a <- a + mu (w - a), for contiguous fp32 tensors of one size.

    rate: lr, factor: c that the gradient is multiplied by, and mu, scalars of fp32 on the GPU; decay: gamma.
    """
    grid = (triton.cdiv(weight.numel(), NUMBERS),)
    numbers_and_average[grid](weight, average, grad, rate, factor, mu, decay, weight.numel(), NUMBERS)
