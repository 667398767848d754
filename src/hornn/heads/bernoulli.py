"""Independent keys: the output layer of polyphonic music."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell
from hornn.heads.base import Head


class BernoulliHead(Head):
    """V keys, each of which sounds or not, independent of the others once h_t is known:

        P(y_t | h_t) = prod_k p_k^y_k (1 - p_k)^(1 - y_k),   p = sigmoid(W_out h_t [+ b_out])

    W_out (V, H), b_out (V). The negative log-likelihood of a step is the sum over its V keys. Source: the layer of
    sigmoids in the released code of Pascanu et al. 2014; their text does not say it. Of `counts` only the length
    is used. Departures: none.

    Its accuracy counts the keys of all steps that were found (p_k > 1/2), divided by the keys that sound or were said
    to: TP / (TP + FP + FN) (Bay et al. 2009, as Boulanger-Lewandowski et al. 2012 use it).
    """

    predicts = "keys"
    precisions = ("auto", "fp32")

    def __init__(self, input_size: int, counts: Sequence[int], bias: bool = False) -> None:
        super().__init__()
        self.W_out = Cell.weight(len(counts), input_size)
        self.b_out = nn.Parameter(torch.zeros(len(counts))) if bias else None
        self.chance_nll = len(counts) * math.log(2)

    def logits(self, features: Tensor) -> Tensor:
        return F.linear(features, self.W_out, self.b_out)

    def log_probs(self, features: Tensor) -> Tensor:
        return F.logsigmoid(self.logits(features))

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        logits = self.logits(features)
        keys = F.binary_cross_entropy_with_logits(logits, targets.clamp(min=0).to(logits), reduction="none")
        return keys.sum(-1).masked_fill(targets[..., 0] < 0, 0)

    def loss(self, features: Tensor, targets: Tensor, scale: float = 1.0) -> Tensor:
        return self.nll(features, targets).sum() * scale

    def hits(self, features: Tensor, targets: Tensor) -> Tensor:
        said, sounds = self.logits(features) > 0, targets > 0
        scored = targets >= 0
        return torch.stack([(said & sounds).sum(), ((said & scored) | sounds).sum()]).double()
