"""Scores by a packed weight: the product and its soft-max in one pass, in C++ for the CPU."""

import torch
from torch import Tensor

from hornn.kernels.cross_entropy import require_targets
from hornn.kernels.library import operators, require_floats
from hornn.kernels.weight_copies import OfWeight


class PackedWeight(OfWeight):
    """A weight (V, H) as `linear_nll` reads it. It takes as much memory as the weight."""

    def read(self) -> Tensor:
        if self.tensor is None or not self.is_current():
            require_floats(weight=self.weight)
            self.tensor = operators().pack_words(self.weight.detach().contiguous(), torch.get_num_threads())
            self.keep()
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
