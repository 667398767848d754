"""The full softmax."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell
from hornn.heads.base import Head
from hornn.kernels.cross_entropy import (
    LinearCrossEntropy,
    LogitMemory,
    native_nll,
)
from hornn.kernels.packed import PackedWeight, linear_nll
from hornn.kernels.reduced import DTYPES, multiplies_in, reduced_product
from hornn.kernels.weight_copies import Bf16Copy

BLOCK = 8_000_000  # logits that scoring holds at once: 32 MB
FEW = 4  # rows, below which the native scores without logits are slower than torch's product (measured)


class SoftmaxHead(Head):
    """Full softmax: P(w | h_t) = softmax(W_out h_t [+ b_out])_w.

    W_out (V, H), b_out (V). Source: HORNN paper, equation (2). Of `counts` only the length is used.

    `precision` concerns the training loss alone: with `bf16` or `fp16` its three matrix products take such operands,
    and the softmax is computed in fp32. Scores (`nll`) use the weights' own dtype unless `scoring` is another;
    `log_probs` always do.
    """

    by_word = ("W_out", "b_out")

    def __init__(self, input_size: int, counts: Sequence[int], bias: bool = False) -> None:
        super().__init__()
        self.W_out = Cell.weight(len(counts), input_size)
        self.b_out = nn.Parameter(torch.zeros(len(counts))) if bias else None
        self.chance_nll = math.log(len(counts))
        self.bf16_copy = Bf16Copy(self.W_out)
        self.packed = PackedWeight(self.W_out)  # for scores
        self.logits = LogitMemory()  # for training

    def log_probs(self, features: Tensor) -> Tensor:
        return F.linear(features, self.W_out, self.b_out).log_softmax(-1)

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        self.logits.drop()
        rows = max(1, BLOCK // self.W_out.size(0))
        blocks = zip(features.flatten(0, 1).split(rows), targets.flatten().split(rows), strict=True)
        return torch.cat([self.score(h, words) for h, words in blocks]).view(targets.shape)

    def score(self, h: Tensor, words: Tensor) -> Tensor:
        """`nll` of features (N, H) and targets (N)."""
        if torch.is_grad_enabled():
            logits = F.linear(h, self.W_out, self.b_out)
            return F.cross_entropy(logits, words.clamp(min=0), reduction="none").masked_fill(words < 0, 0)
        if self.native and self.scoring == "fp32" and len(h) >= FEW:
            return linear_nll(h, self.packed.of(self.W_out), self.b_out, words)
        if dtype := self.reduced(self.scoring):
            logits = reduced_product(
                h, self.W_out.mT, h.new_empty(len(h), len(self.W_out), dtype=dtype), dtype
            )
        else:
            operand = self.bf16_copy.of(self.W_out).read() if self.scoring == "bf16" else self.W_out
            logits = h.to(operand.dtype) @ operand.mT
        if self.native:
            return native_nll(logits, self.b_out, words)
        logits = logits.to(h.dtype) if self.b_out is None else logits.to(h.dtype) + self.b_out
        return F.cross_entropy(logits, words.clamp(min=0), reduction="none").masked_fill(words < 0, 0)

    def loss(self, features: Tensor, targets: Tensor, scale: float = 1.0) -> Tensor:
        """`scale` times the sum of `nll`, without a second (T B, V) block."""
        self.packed.drop()
        reduced = self.reduced(self.precision)
        bf16_copy = (
            self.bf16_copy.of(self.W_out).read() if self.precision == "bf16" and reduced is None else None
        )
        loss: Tensor = LinearCrossEntropy.apply(
            features.flatten(0, 1),
            self.W_out,
            self.b_out,
            targets.flatten(),
            scale,
            bf16_copy,
            self.native,
            self.logits,
            reduced,
        )
        return loss

    def reduced(self, precision: str) -> torch.dtype | None:
        """The dtype in which the native kernels multiply for a precision; None where torch does."""
        dtype = DTYPES.get(precision)
        return dtype if dtype is not None and self.native and multiplies_in(dtype) else None
