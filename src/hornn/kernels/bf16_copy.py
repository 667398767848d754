"""A weight in bf16 beside the weight in fp32, for products of operands in bf16."""

from typing import Any

import torch
from torch import Tensor

Moment = tuple[int, int]  # of a weight: it changes with the weight


def moment_of(weight: Tensor) -> Moment:
    return weight._version, weight.data_ptr()


class Bf16Copy:
    """A weight in bf16, made anew where the weight has changed since. `tensor` is the copy, once there is one.

    Whoever changes the weight and the copy alike says so by `keep`.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.tensor: Tensor | None = None
        self.made_at: Moment | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the copy: another weight may have the same version."""
        return {"weight": self.weight, "tensor": None, "made_at": None}

    def of(self, weight: Tensor) -> "Bf16Copy":
        """The copy of this weight, which may have taken the place of an earlier one."""
        if weight is not self.weight:
            self.weight, self.tensor = weight, None
        return self

    def read(self) -> Tensor:
        if self.tensor is None or self.tensor.device != self.weight.device:
            with torch.inference_mode(False):  # a training may write into it later
                self.tensor = torch.empty_like(self.weight, dtype=torch.bfloat16, requires_grad=False)
            self.made_at = None
        if self.made_at != moment_of(self.weight):
            self.tensor.copy_(self.weight.detach())
            self.keep()
        return self.tensor

    def keep(self) -> None:
        self.made_at = moment_of(self.weight)
