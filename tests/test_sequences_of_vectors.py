"""A network that reads vectors and predicts keys: its output layer, its input, its loss beside torch's own."""

import math
from functools import partial

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.data.base import IGNORE, Chunk
from hornn.heads.bernoulli import BernoulliHead
from hornn.heads.softmax import SoftmaxHead
from hornn.module import TruncatedBptt
from hornn.network import LinearEmbedding, SequenceModel
from small_models import training

T, B, WIDTH, V, H = 4, 3, 5, 7, 6
LENGTHS = [4, 2, 1]  # of the columns


def chunk() -> Chunk:
    torch.manual_seed(1)
    inputs, targets = torch.randn(T, B, WIDTH, dtype=torch.float64), torch.randint(2, (T, B, V)).double()
    for column, length in enumerate(LENGTHS):
        inputs[length:, column], targets[length:, column] = 0, IGNORE
    return Chunk(inputs, targets, sum(LENGTHS), B, True)


def build(embedding_size: int | None = None, bias: bool = True) -> SequenceModel:
    torch.manual_seed(0)
    cell = partial(Rnn, hidden_size=H)
    return SequenceModel(
        [1] * V,
        cell,
        embedding_size,
        head=BernoulliHead,
        output_bias=bias,
        input_width=WIDTH,
        precision="fp32",
    ).double()


def test_the_loss_is_torch_s_own_without_the_padding() -> None:
    network, batch = build(), chunk()
    features, _ = network(batch.inputs, network.initial_state(B))
    torch.nn.init.normal_(network.head.b_out)
    logits = F.linear(features, network.head.W_out, network.head.b_out)
    expected = sum(
        F.binary_cross_entropy_with_logits(
            logits[:length, column], batch.targets[:length, column], reduction="sum"
        )
        for column, length in enumerate(LENGTHS)
    )
    assert_close(network.head.loss(features, batch.targets, 0.5), 0.5 * expected)
    nll = network.head.nll(features, batch.targets)
    assert nll.shape == (T, B)
    assert [int((column != 0).sum()) for column in nll.T] == LENGTHS
    assert_close(network.head.log_probs(features).exp(), torch.sigmoid(logits))


def test_padding_has_no_gradient() -> None:
    network, batch = build(), chunk()
    inputs = batch.inputs.clone().requires_grad_()
    features, _ = network(inputs, network.initial_state(B))
    network.head.loss(features, batch.targets).backward()
    assert inputs.grad is not None
    for column, length in enumerate(LENGTHS):
        assert (inputs.grad[length:, column] == 0).all()
        assert (inputs.grad[:length, column] != 0).all()


def test_a_uniform_guess_costs_ln_2_a_key() -> None:
    head = BernoulliHead(H, [1] * V)
    torch.nn.init.zeros_(head.W_out)
    nll = head.nll(torch.randn(T, B, H), torch.ones(T, B, V))
    assert_close(nll, torch.full((T, B), V * math.log(2)))
    assert head.chance_nll == pytest.approx(V * math.log(2))


def test_accuracy_of_keys_counts_what_sounds_or_was_said_to() -> None:
    head = BernoulliHead(2, [1, 1])
    torch.nn.init.eye_(head.W_out)
    features = torch.tensor([[[3.0, 3.0]], [[-3.0, 3.0]], [[3.0, 3.0]]])  # said: both, the second, (padding)
    targets = torch.tensor([[[1.0, 0.0]], [[1.0, 1.0]], [[-1.0, -1.0]]])
    assert head.hits(features, targets).tolist() == [2.0, 4.0]  # 2 found, 1 said in vain, 1 missed


def test_accuracy_of_classes_counts_the_likeliest() -> None:
    head = SoftmaxHead(3, [1, 1, 1])
    torch.nn.init.eye_(head.W_out)
    targets = torch.tensor([[0, 1], [2, -1]])
    assert head.hits(torch.eye(3)[torch.tensor([[0, 2], [2, 0]])], targets).tolist() == [2.0, 3.0]


def test_vectors_come_as_they_are_or_by_a_linear_map() -> None:
    plain, mapped = build(), build(embedding_size=2)
    assert plain.table is mapped.table is None
    assert plain.cells[0].W_in.shape == (H, WIDTH)
    assert isinstance(mapped.embedding, LinearEmbedding)
    assert mapped.embedding.weight.shape == (2, WIDTH)
    x, state = chunk().inputs, mapped.initial_state(B)
    features, _ = mapped(x, state)
    W = mapped.cells[0].W_in @ mapped.embedding.weight
    plain.cells[0].W_in.data, plain.cells[0].W_h.data = W.data, mapped.cells[0].W_h.data
    assert_close(plain(x, state)[0], features)


def test_a_table_of_vectors_cannot_be_tied() -> None:
    with pytest.raises(ValueError, match="needs inputs that are words, and these are vectors"):
        SequenceModel([1] * V, partial(Rnn, hidden_size=H), input_width=WIDTH, tie_weights=True)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_an_update_lowers_the_loss_and_a_new_batch_begins_anew(noise: float) -> None:
    module: TruncatedBptt = training(build(), weight_noise=noise)
    module.states["train"] = module.network.initial_state(B)
    optimizer = module.configure_optimizers()
    module.optimizers = lambda use_pl_optimizer=True: optimizer  # type: ignore[method-assign,assignment]
    module.manual_backward = lambda loss: loss.backward()  # type: ignore[method-assign]
    losses = []
    for _ in range(20):
        module.states["train"] = module.network.initial_state(B)
        before = float(module.tally("train").nll)
        module.update(chunk())
        losses.append(float(module.tally("train").nll) - before)
    assert losses[-1] < losses[0]
