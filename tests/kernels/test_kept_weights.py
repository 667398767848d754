"""What the output layer keeps of its weight between two calls: it is always of the weight as it is now."""

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hornn.heads.softmax import SoftmaxHead
from kernels.tolerance import needs_compiler
from reference.cases import seeded

N, H, V = 5, 6, 30
FEATURES = torch.randn(N, 1, H, generator=seeded(1))
TARGETS = torch.randint(V, (N, 1), generator=seeded(2))


def build(native: bool) -> SoftmaxHead:
    """A head that scores by a packed weight, or has its loss by a copy in bf16."""
    head = SoftmaxHead(H, [1] * V)
    head.native, head.precision = native, "fp32" if native else "bf16"
    return head


def measure(head: SoftmaxHead) -> float:
    with torch.no_grad():
        return float(head.nll(FEATURES, TARGETS).sum() if head.native else head.loss(FEATURES, TARGETS))


def draw(seed: int) -> Tensor:
    return torch.randn(V, H, generator=seeded(seed))


def assigned(head: SoftmaxHead) -> SoftmaxHead:
    head.load_state_dict({"W_out": draw(4)}, assign=True)
    return head


def replaced(head: SoftmaxHead) -> SoftmaxHead:
    head.W_out = nn.Parameter(draw(4))
    return head


def copied(head: SoftmaxHead) -> SoftmaxHead:
    """As often changed as the first one."""
    other = copy.deepcopy(head)
    while other.W_out._version < head.W_out._version:
        other.load_state_dict({"W_out": draw(4)})
    return other


def read_again(head: SoftmaxHead) -> SoftmaxHead:
    file = io.BytesIO()
    torch.save(head, file)
    file.seek(0)
    other: SoftmaxHead = torch.load(file, weights_only=False)
    other.load_state_dict({"W_out": draw(4)})
    return other


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
@pytest.mark.parametrize("change", [assigned, replaced, copied, read_again])
def test_another_weight_takes_the_place(native: bool, change: Callable[[SoftmaxHead], SoftmaxHead]) -> None:
    head = build(native)
    for seed in (2, 3):
        head.load_state_dict({"W_out": draw(seed)})
    before, other = measure(head), change(head)
    fresh = build(native)
    fresh.load_state_dict({"W_out": draw(4)})
    assert measure(other) == measure(fresh) != before


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
def test_a_loss_without_gradients_does_no_harm_to_the_next_update(native: bool) -> None:
    """Under inference mode, with so many words that the gradient takes the place of logits."""
    words = 10_100 if native else V
    head = SoftmaxHead(H, [1] * words)
    head.native, head.precision = native, "fp32" if native else "bf16"
    with torch.inference_mode():
        expected = head.loss(FEATURES.repeat(2, 1, 1), TARGETS.repeat(2, 1))
    loss = head.loss(FEATURES.repeat(2, 1, 1), TARGETS.repeat(2, 1))
    loss.backward()
    assert loss.item() == expected.item()


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
@pytest.mark.parametrize("grad", [True, False])
def test_padding_counts_nothing_where_numbers_are_not_finite(native: bool, grad: bool) -> None:
    head = build(native)
    head.load_state_dict({"W_out": draw(2).index_fill(0, torch.tensor([3]), torch.nan)})
    targets = TARGETS.index_fill(0, torch.tensor([2]), -1)
    with torch.set_grad_enabled(grad):
        found = head.nll(FEATURES, targets).flatten().tolist()
    assert found[2] == 0
    assert all(number != number for place, number in enumerate(found) if place != 2)
