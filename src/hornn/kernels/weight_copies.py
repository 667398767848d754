"""What is kept beside a weight and follows it; a weight in bf16 beside the weight in fp32."""

from typing import Any, Self

import torch
from torch import Tensor


class OfWeight:
    """`tensor` is computed from a weight, once somebody has read it, and anew where the weight has changed since."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.tensor: Tensor | None = None
        self.made_at: tuple[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the tensor: the weight of a copy may have the same version and other numbers."""
        return {"weight": self.weight, "tensor": None, "made_at": None}

    def of(self, weight: Tensor) -> Self:
        """The same of this weight, which may have taken the place of an earlier one."""
        if weight is not self.weight:
            self.weight, self.tensor = weight, None
        return self

    def is_current(self) -> bool:
        return self.tensor is not None and self.made_at == self.moment()

    def moment(self) -> tuple[int, int]:
        """What changes with the weight."""
        return self.weight._version, self.weight.data_ptr()

    def keep(self) -> None:
        """Take the tensor for what follows from the weight as it is now."""
        self.made_at = self.moment()


class Bf16Copy(OfWeight):
    """A weight in bf16, for products of operands in bf16. Whoever changes both alike says so by `keep`."""

    def read(self) -> Tensor:
        if self.tensor is None or self.tensor.device != self.weight.device:
            with torch.inference_mode(False):  # a training may write into it later
                self.tensor = torch.empty_like(self.weight, dtype=torch.bfloat16, requires_grad=False)
            self.made_at = None
        if not self.is_current():
            self.tensor.copy_(self.weight.detach())
            self.keep()
        return self.tensor
