"""The running sums of a split."""

import torch
from torch import Tensor, nn
from torchmetrics import SumMetric


class Nats(SumMetric):
    """A sum in float64 of numbers that are over all ranks already. A summand that is no number makes the sum none.

    Without `dtype` SumMetric rounds each summand to fp32 once Lightning has moved it.
    """

    dtype = torch.float64

    def __init__(self) -> None:
        super().__init__(nan_strategy="disable", sync_on_compute=False)  # by default a nan is left out


class Tally(nn.Module):
    """The sums of one split, over all ranks: of -ln P, of the targets behind it, of what its accuracy is made of.

    targets: how many. hits: (2) in float64, sums of `hornn.heads.base.Head.hits`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sum = Nats().set_dtype(torch.float64)
        self.targets = 0
        self.hits = torch.zeros(2, dtype=torch.float64)

    def add(self, nll: Tensor, targets: int, hits: Tensor | None = None) -> None:
        self.sum.update(nll)
        self.targets += targets
        if hits is not None:
            self.hits = self.hits + hits.cpu()

    def clear(self) -> None:
        self.sum.reset()
        self.targets = 0
        self.hits = torch.zeros(2, dtype=torch.float64)

    @property
    def nll(self) -> Tensor:
        """The sum of -ln P in nats, float64."""
        return self.sum.compute().clone() if self.targets else torch.zeros(())

    @property
    def mean_nll(self) -> float:
        """Nats per target."""
        return float(self.nll) / max(self.targets, 1)

    @property
    def accuracy(self) -> float:
        """The share of right predictions; 0 where there was nothing to find."""
        hits, tried = self.hits.tolist()
        return hits / tried if tried else 0.0
