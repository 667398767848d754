"""Noise on the weights while a gradient is taken."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from hornn.checks import require_range
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
        self.weights = [p for name, p in named_parameters if not name.rpartition(".")[2].startswith("b")]
        self.rows: list[Tensor | None] = []  # of each weight: the rows that have noise, None: all rows
        self.clean: list[Tensor] = []  # what they were without it

    @torch.no_grad()
    def add(self, words: Sequence[Tensor]) -> None:
        """Add the noise, before a gradient that reads the embeddings of `words`."""
        if not self.std:
            return
        read = torch.cat([ids.flatten() for ids in words]).unique() if self.native else None
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
