"""Scores by a packed weight: the product and its soft-max in one pass, in C++ for the CPU."""

from typing import Any

import torch
from torch import Tensor

from hornn.kernels.bf16_copy import Moment, moment_of
from hornn.kernels.cross_entropy import require_targets
from hornn.kernels.library import operators, require_floats


class PackedWeight:
    """A weight (V, H) as `linear_nll` reads it, packed anew where the weight has changed since.

    It takes as much memory as the weight.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.tensor: Tensor | None = None
        self.packed_at: Moment | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is packed: another weight may have the same version."""
        return {"weight": self.weight, "tensor": None, "packed_at": None}

    def of(self, weight: Tensor) -> "PackedWeight":
        """This weight packed, which may have taken the place of an earlier one."""
        if weight is not self.weight:
            self.weight, self.tensor = weight, None
        return self

    def read(self) -> Tensor:
        now = moment_of(self.weight)
        if self.tensor is None or self.packed_at != now:
            require_floats(weight=self.weight)
            self.tensor = operators().pack_words(self.weight.detach().contiguous(), torch.get_num_threads())
            self.packed_at = now
        return self.tensor

    def drop(self) -> None:
        """Give the memory back until the next `read`."""
        self.tensor = None


def linear_nll(h: Tensor, packed: PackedWeight, bias: Tensor | None, targets: Tensor) -> Tensor:
    """-log softmax(W h [+ b])_target of each row (N), float64, 0 where a target is negative; in fp32, without gradient.

    h (N, H), packed: of W (V, H), bias (V). The logits are never written: blocks of them are summed up in the cache.
    targets and errors: as in `native_cross_entropy_`.
    """
    weight = packed.weight
    require_floats(h=h, weight=weight)
    (N, H), (V, width) = h.shape, weight.shape
    if width != H or 0 in (H, V):
        raise ValueError(
            f"features (N, H) and a weight (V, H) do not fit: {tuple(h.shape)}, {tuple(weight.shape)}"
        )
    require_targets(N, V, bias, targets)
    found = h.new_zeros(N, dtype=torch.float64)
    scored = (targets >= 0).nonzero().squeeze(-1)
    if len(scored) < N:
        h, targets = h[scored], targets[scored]
    operator = operators().linear_nll
    found[scored] = operator(h.contiguous(), packed.read(), V, bias, targets, torch.get_num_threads())
    return found
