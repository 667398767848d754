"""Noise on the weights, and dropped weights, while a gradient is taken."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from hornn.cells.base import is_bias
from hornn.checks import require_dropout, require_range
from hornn.kernels import update as kernels


class WeightNoise:
    """Noise N(0, std^2) on every weight while a gradient is taken, drawn anew for each update.

    Of `table`, the embedding, an update reads the rows of its words alone. `native` may be set for weights in fp32 on a
    CPU: `hornn.kernels.update` draws the noise then, and spares the other rows.

    Source: Pascanu et al. 2014, section 5.2 (std 0.075 in the released code, biases spared).
    """

    native = False

    def __init__(
        self, named_parameters: Iterable[tuple[str, Tensor]], std: float, table: Tensor | None = None
    ) -> None:
        require_range("weight_noise", std, ">= 0", std >= 0)
        self.std = std
        self.table = table
        self.weights = [p for name, p in named_parameters if not is_bias(name)]
        self.rows: list[Tensor | None] = []  # of each weight: the rows that have noise, None: all rows
        self.clean: list[Tensor] = []  # what they were without it

    @torch.no_grad()
    def add(self, words: Sequence[Tensor]) -> None:
        """Add the noise, before a gradient that reads the embeddings of `words`, or vectors where there is no table."""
        if not self.std:
            return
        spares = self.native and self.table is not None  # inputs that are no words are all numbers, and many
        read = torch.cat([ids.flatten() for ids in words]).unique() if spares else None
        self.rows = [read if weight is self.table else None for weight in self.weights]
        self.clean = [
            weight.clone() if rows is None else weight.index_select(0, rows)
            for weight, rows in zip(self.weights, self.rows, strict=True)
        ]
        if self.native:
            seeds = torch.randint(2**63 - 1, (len(self.weights),)).tolist()
            for weight, rows, seed in zip(self.weights, self.rows, seeds, strict=True):
                kernels.add_noise_(weight, self.std, seed, rows)
        else:
            for weight in self.weights:
                weight.add_(torch.randn_like(weight), alpha=self.std)

    @torch.no_grad()
    def remove(self) -> None:
        for weight, rows, clean in zip(self.weights, self.rows, self.clean, strict=False):
            if rows is None:
                weight.copy_(clean)
            else:
                weight.index_copy_(0, rows, clean)
        self.rows, self.clean = [], []


class DroppedWeights:
    """Zeros among weights while a gradient is taken, drawn anew for each update.

        W' = W * M / (1 - rate),  M_ij ~ Bernoulli(1 - rate);   dL/dW = dL/dW' * M / (1 - rate)

    Source: Merity et al. 2018 ("Regularizing and optimizing LSTM language models"), section 2, for the matrices that
    act on a state. Raises ValueError for a rate outside [0, 1).
    """

    def __init__(self, weights: Sequence[Tensor], rate: float) -> None:
        require_dropout(recurrent_dropout=rate)
        self.weights = weights if rate else []
        self.rate = rate
        self.whole: list[Tensor] = []  # what the weights were
        self.factors: list[Tensor] = []  # M / (1 - rate)

    @torch.no_grad()
    def drop(self) -> None:
        self.whole = [weight.clone() for weight in self.weights]
        self.factors = [
            torch.empty_like(w).bernoulli_(1 - self.rate).div_(1 - self.rate) for w in self.weights
        ]
        for weight, factor in zip(self.weights, self.factors, strict=True):
            weight.mul_(factor)

    @torch.no_grad()
    def restore(self) -> None:
        """Bring the weights back, after the gradients of the dropped ones: these become theirs."""
        for weight, whole, factor in zip(self.weights, self.whole, self.factors, strict=True):
            weight.copy_(whole)
            if weight.grad is not None:
                weight.grad.mul_(factor)
        self.whole, self.factors = [], []
