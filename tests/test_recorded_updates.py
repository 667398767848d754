"""What a recording keeps and what it replaces, by a CUDA graph whose body runs once, on the CPU."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from hornn.network import NetworkState
from hornn.optim.descent import MomentumSGD
from hornn.recorded_updates import Log, Outcome, RecordedUpdate

CPU = torch.device("cpu")


class Pair(NamedTuple):
    """Two states, of which the older one was the newer one a step before."""

    h_1: Tensor
    h_2: Tensor


@pytest.fixture(autouse=True)
def _graph_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", lambda *args, **kwargs: nullcontext())


class Training:
    """A network of one weight vector, whose gradient is (1, 2, 2), and a state that counts steps."""

    def __init__(self) -> None:
        self.w = nn.Parameter(torch.ones(3))
        self.optimizer = MomentumSGD([self.w], lr=1e-4, clip=5.0)
        self.log = Log(CPU)

    def differentiate(self, chunks: Sequence[Tensor], state: NetworkState, targets: Tensor) -> Outcome:
        (self.w * torch.tensor([1.0, 2.0, 2.0])).sum().backward()
        (pair,) = state
        for _ in chunks[0]:
            pair = Pair(pair.h_1 + 1, pair.h_1)
        return Outcome(self.w.detach(), (pair,), torch.zeros((), dtype=torch.float64))

    def record(self, steps: int) -> RecordedUpdate:
        state = (Pair(torch.tensor([[10.0]]), torch.tensor([[5.0]])),)
        chunk = torch.zeros(steps, 1)
        return RecordedUpdate(self.differentiate, [chunk], state, chunk, self.optimizer, self.log)


def test_a_gradient_that_was_left_is_not_added_to() -> None:
    training = Training()
    training.w.grad = torch.ones(3)
    training.record(1)
    assert training.log.rows[0, 1] == 3
    assert training.w.grad is None


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_state_may_hand_on_a_tensor_of_the_state_before(steps: int) -> None:
    (pair,) = Training().record(steps).state
    assert pair == Pair(torch.tensor([[10.0 + steps]]), torch.tensor([[9.0 + steps]]))
