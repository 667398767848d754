"""The embedding of words, and its gradient where it is the output layer's matrix, too."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from hornn.cells.elman import Rnn
from hornn.embedding import WordEmbedding
from hornn.network import SequenceModel
from hornn.optim.adaptive import AdamW
from hornn.optim.descent import MomentumSGD
from hornn.optim.spared import spare_work

V, H, CPU = 30, 20, torch.device("cpu")
CHUNKS = [torch.randint(V, (2, 7, 3), generator=torch.Generator().manual_seed(seed)) for seed in (0, 1)]


def build(**given: Any) -> SequenceModel:
    torch.manual_seed(0)
    network = SequenceModel([1] * V, partial(Rnn, hidden_size=H), H, tie_weights=True, **given)
    network.prepare(CPU)
    return network


def gradients(network: SequenceModel, chunks: list[Tensor]) -> list[Tensor]:
    """Of all parameters, of the sum of the losses of these chunks."""
    for inputs, targets in chunks:
        features, _ = network(inputs, network.initial_state(inputs.size(1)))
        network.head.loss(features, targets, 0.1).backward()
    return [parameter.grad for parameter in network.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("backend", ["eager", "auto"])
@pytest.mark.parametrize("optimizer", [AdamW, MomentumSGD])
@pytest.mark.parametrize("chunks", [CHUNKS[:1], CHUNKS], ids=["one chunk", "two chunks"])
def test_rows_are_added_to_the_gradient_of_a_tied_matrix(
    optimizer: Any, chunks: list[Tensor], backend: str
) -> None:
    expected = gradients(build(backend=backend), chunks)
    network = build(backend=backend)
    spare_work(network, optimizer(network.parameters(), lr=0.1))
    assert network.embedding.in_place
    found = gradients(network, chunks)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_rows_are_the_whole_gradient_where_the_output_layer_gives_none() -> None:
    embedding = WordEmbedding(4, 2)
    embedding.in_place = True
    embedding(torch.tensor([[1, 3], [1, 0]])).sum().backward()
    assert torch.equal(embedding.weight.grad, torch.tensor([[1.0, 1], [2, 2], [0, 0], [1, 1]]))


def test_only_a_training_adds_rows_in_place() -> None:
    """Dynamic evaluation asks for gradients in another way; a table that does not learn gets none."""
    network = build()
    spare_work(network, AdamW(network.parameters(), lr=0.1))
    network.eval()
    inputs, targets = CHUNKS[0]
    features, _ = network(inputs, network.initial_state(3))
    W_out = network.head.W_out
    (found,) = torch.autograd.grad(network.head.nll(features, targets).sum(), [W_out])
    assert W_out.grad is None
    W_out.requires_grad_(False)
    network.train()
    gradients(network, CHUNKS)
    assert W_out.grad is None
    reference = build().eval()
    features, _ = reference(inputs, reference.initial_state(3))
    reference.head.nll(features, targets).sum().backward()
    torch.testing.assert_close(found, reference.head.W_out.grad, rtol=1e-5, atol=1e-6)


def test_processes_share_whole_gradients() -> None:
    network = build()
    spare_work(network, AdamW(network.parameters(), lr=0.1), wrapped=True)
    assert not network.embedding.in_place
