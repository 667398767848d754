"""Euclidean norms that do not depend on how a tensor is cut: summed in float64.

torch's own norm in fp32 is 1e-4 too small for 4 million numbers, so a clip would depend on who sums them.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from hornn.columns import total, world_size


def norm(tensors: Iterable[Tensor]) -> Tensor:
    """The norm of all these tensors together, a float64 scalar. A row's own sum of squares is in the row's dtype."""
    return torch.stack([row_norms(tensor).square().sum() for tensor in tensors]).sum().sqrt()


def norm_over_columns(grad: Tensor) -> Tensor:
    """The norm of a gradient (..., B, W) over the columns of all processes, as one process would have it.

    DistributedDataParallel takes the mean over the processes, so each has its part of the gradient `world_size` fold.
    """
    return total(row_norms(grad).square().sum()).sqrt() / world_size()


def row_norms(tensor: Tensor) -> Tensor:
    return torch.linalg.vector_norm(tensor, dim=-1).double() if tensor.ndim > 1 else tensor.double()
