"""Embeddings: of words by a table, of vectors by a matrix."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell


class LinearEmbedding(nn.Module):
    """E x_t of vectors x_t (T, B, I); E (embedding_size, I)."""

    def __init__(self, input_width: int, embedding_size: int) -> None:
        super().__init__()
        self.weight = Cell.weight(embedding_size, input_width)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class WordEmbedding(nn.Embedding):
    """The rows of a table (V, E) for ids of any shape.

    With `in_place`, a training adds the gradient of the rows to `weight.grad` itself, in the backward pass. So there is
    one gradient as large as the table, and not three, where the table is the output layer's matrix, too. What asks
    torch for gradients in another way, as `torch.autograd.grad` does, misses these rows.
    """

    in_place = False

    def forward(self, input: Tensor) -> Tensor:  # nn.Embedding's name
        if self.in_place and self.training and self.weight.requires_grad and torch.is_grad_enabled():
            anchor = torch.empty(0, requires_grad=True)
            rows: Tensor = RowsInPlace.apply(anchor, input, (self.weight,))
            return rows
        return super().forward(input)


class RowsInPlace(torch.autograd.Function):
    """`apply(anchor, ids, (weight,))`: the rows of weight; their gradient is added to `weight.grad`.

    In a tuple autograd does not see the weight. It sees the anchor, which has to require a gradient and gets none.
    """

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, ids: Tensor, table: tuple[nn.Parameter]) -> Tensor:
        ctx.ids, ctx.table = ids, table
        return F.embedding(ids, table[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_rows: Tensor) -> tuple[None, None, None]:
        (weight,) = ctx.table
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        weight.grad.index_put_((ctx.ids.flatten(),), grad_rows.flatten(0, -2), accumulate=True)
        return None, None, None
