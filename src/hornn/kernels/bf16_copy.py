"""A weight in bf16 beside the weight in fp32, for products of operands in bf16."""

import torch
from torch import Tensor


class Bf16Copy:
    """A weight in bf16, made anew where the weight has changed since. `tensor` is the copy, once there is one.

    Whoever changes the weight and the copy alike says so by `keep`.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.tensor: Tensor | None = None
        self.version = -1

    def read(self) -> Tensor:
        if self.tensor is None or self.tensor.device != self.weight.device:
            self.tensor = torch.empty_like(self.weight, dtype=torch.bfloat16, requires_grad=False)
            self.version = -1
        if self.version != self.weight._version:
            self.tensor.copy_(self.weight.detach())
            self.keep()
        return self.tensor

    def keep(self) -> None:
        self.version = self.weight._version
