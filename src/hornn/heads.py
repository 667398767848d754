"""Output layers: from the features of a chunk to the likelihood of its targets."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell, require_choice

PRECISIONS = ("auto", "fp32", "bf16")
ROWS = 64  # rows of logits that are widened to fp32 at once: their block stays in the cache


def resolve_precision(precision: str, device: torch.device) -> str:
    """Turn `auto` into `bf16` where `device` multiplies bf16 matrices in hardware, else into `fp32`.

    Raises ValueError for an unknown precision, or for `bf16` on a device that only emulates it.
    """
    require_choice("network.precision", precision, PRECISIONS)
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
    if precision == "bf16" and not fast:
        raise ValueError(f"network.precision=bf16 is not supported by this {device.type}; use fp32, or auto")
    return ("bf16" if fast else "fp32") if precision == "auto" else precision


class SoftmaxHead(nn.Module):
    """Full softmax: P(w | h_t) = softmax(W_out h_t [+ b_out])_w.

    W_out (V, H), b_out (V). Source: HORNN paper, equation (2).

    `precision` concerns the training loss alone: with `bf16` its three matrix products take bf16 operands,
    and the softmax is computed in fp32. Scores (`nll`, `log_probs`) always use the weights' own dtype.
    """

    def __init__(self, input_size: int, vocab_size: int, bias: bool = False) -> None:
        super().__init__()
        self.W_out = Cell.weight(vocab_size, input_size)
        self.b_out = nn.Parameter(torch.zeros(vocab_size)) if bias else None
        self.precision = "fp32"

    def log_probs(self, features: Tensor) -> Tensor:
        """(..., H) -> log P over the vocabulary (..., V) in nats."""
        return F.linear(features, self.W_out, self.b_out).log_softmax(-1)

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        """Negative log-likelihood in nats of each target (T, B); 0 where a target is negative (padding)."""
        blocks = zip(features.flatten(0, 1).split(1024), targets.flatten().split(1024), strict=True)
        logits = ((F.linear(h, self.W_out, self.b_out), t) for h, t in blocks)
        nll = [F.cross_entropy(x, t.clamp(min=0), reduction="none") * (t >= 0) for x, t in logits]
        return torch.cat(nll).view(targets.shape)

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """The sum of `nll` over the chunk, differentiable, without a second (T B, V) block."""
        dtype = torch.bfloat16 if self.precision == "bf16" else features.dtype
        loss: Tensor = LinearCrossEntropy.apply(
            features.flatten(0, 1), self.W_out, self.b_out, targets.flatten(), dtype
        )
        return loss


class LinearCrossEntropy(torch.autograd.Function):
    """Sum over rows of the cross entropy of softmax(W h [+ b]), with its gradients found in the forward pass.

    With p = softmax(W h + b) and the one-hot target e, the gradient with respect to the logits is
    p - e; it overwrites the logits block by block, and two products turn it into the gradients of h and W.
    Products are taken in `dtype`, sums and exponentials in fp32 (or in h's dtype if that is wider).
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """h (N, H), weight (V, H), bias (V), targets (N) with negative ids ignored -> scalar in nats."""
        narrow_h, narrow_weight = h.to(dtype), weight.to(dtype)
        logits = narrow_h @ narrow_weight.mT
        wide = torch.promote_types(h.dtype, torch.float32)
        kept = targets >= 0
        total = h.new_zeros((), dtype=torch.float64)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        for rows, labels, mask in zip(logits.split(ROWS), targets.split(ROWS), kept.split(ROWS), strict=True):
            block = rows.to(wide)
            if bias is not None:
                block = block + bias
            log_p = block.log_softmax(-1)
            labels = labels.clamp(min=0).unsqueeze(-1)
            total -= (log_p.gather(-1, labels).squeeze(-1) * mask).sum(dtype=torch.float64)
            grad = log_p.exp_()
            grad.scatter_add_(-1, labels, grad.new_full(labels.shape, -1.0))
            grad *= mask.unsqueeze(-1)
            if grad_bias is not None:
                grad_bias += grad.sum(0)
            rows.copy_(grad)
        grad_h = (logits @ narrow_weight).to(h.dtype)
        grad_weight = (logits.mT @ narrow_h).to(weight.dtype)
        ctx.save_for_backward(grad_h, grad_weight, grad_bias)
        return total.to(wide)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        grad_h, grad_weight, grad_bias = (
            None if grad is None else grad * grad_output.to(grad.dtype) for grad in ctx.saved_tensors
        )
        return grad_h, grad_weight, grad_bias, None, None
