"""A language model of six units over eleven words, and its training module."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from hornn.cells.hornn import FofeHornn
from hornn.module import TruncatedBptt
from hornn.network import SequenceModel
from hornn.optim.descent import MomentumSGD
from hornn.optim.schedules import Constant

V, H, B, T = 11, 6, 3, 4


def build(seed: int = 0, **options: Any) -> SequenceModel:
    torch.manual_seed(seed)
    cell = partial(FofeHornn, hidden_size=H, order=2)
    return SequenceModel([1] * V, cell, H, **{"precision": "fp32", **options}).double()


def training(network: SequenceModel, **options: Any) -> TruncatedBptt:
    module = TruncatedBptt(network, partial(MomentumSGD, lr=1.0), Constant(), seq_len=T, **options)
    module.trainer = SimpleNamespace(world_size=1)  # type: ignore[assignment]
    return module
