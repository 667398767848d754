"""The noise on the weights: its size, whom it spares, and that it goes. Weights that are dropped and come back."""

import pytest
import torch
from torch.testing import assert_close

from hornn.baselines.dnn import Dnn
from hornn.cells.lstm import Lstm
from hornn.kernels import library as native
from hornn.optim.noise import DroppedWeights, WeightNoise


@pytest.mark.parametrize("use_native", [False, True])
def test_weight_noise_spares_biases_and_leaves_no_trace(use_native: bool) -> None:
    if use_native and native.why_not():
        pytest.skip("needs the native kernels")
    torch.manual_seed(0)
    cell, table = Lstm(input_size=50, hidden_size=40, bias=True), torch.nn.Embedding(30, 50)
    named = {**dict(cell.named_parameters()), "embedding.weight": table.weight}
    clean = {name: p.detach().clone() for name, p in named.items()}
    noise = WeightNoise(named.items(), 0.075, table.weight)
    noise.native = use_native
    words = [torch.tensor([[4, 29]]), torch.tensor([[4, 0]])]
    draws = []
    for _ in range(2):
        noise.add(words)
        draws.append((cell.W_in - clean["W_in"]).detach())
        assert_close(cell.b, clean["b"], rtol=0, atol=0)
        changed = (table.weight != clean["embedding.weight"]).any(1).nonzero().flatten().tolist()
        assert changed == [0, 4, 29] if use_native else set(changed) >= {0, 4, 29}
        noise.remove()
        for name, p in named.items():
            assert_close(p, clean[name], rtol=0, atol=0)
    assert not torch.equal(*draws)
    assert float(draws[0].std()) == pytest.approx(0.075, rel=0.02)
    assert float(draws[0].mean()) == pytest.approx(0, abs=0.003)


def test_without_a_table_the_noise_does_not_look_at_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be thousands of numbers, to be sorted for each update."""
    if native.why_not():
        pytest.skip("needs the native kernels")
    monkeypatch.setattr(torch.Tensor, "unique", lambda *_: pytest.fail("the inputs were sorted"))
    cell = Lstm(input_size=5, hidden_size=4)
    noise, clean = WeightNoise(cell.named_parameters(), 0.1), cell.W_in.detach().clone()
    noise.native = True
    noise.add([torch.randn(3, 2, 5)])
    assert not torch.equal(cell.W_in, clean)


def test_the_noise_spares_the_biases_of_the_feed_forward_networks() -> None:
    cell = Dnn(input_size=5, hidden_size=4, num_hidden=3)
    noise = WeightNoise(cell.named_parameters(), 0.1)
    assert list(map(id, noise.weights)) == list(map(id, [cell.H, *cell.W]))


def test_dropped_weights_come_back_with_the_gradients_of_those_that_stayed() -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(60, 70))
    clean, x = weight.detach().clone(), torch.randn(70)
    dropped = DroppedWeights([weight], 0.25)
    masks = []
    for _ in range(2):
        weight.grad = None
        dropped.drop()
        stayed = weight.detach() != 0
        assert_close(weight.detach(), clean * stayed / 0.75)
        (weight @ x).sum().backward()
        dropped.restore()
        assert torch.equal(weight, clean)
        assert_close(weight.grad, x.expand(60, 70) * stayed / 0.75)
        assert float(stayed.double().mean()) == pytest.approx(0.75, abs=0.02)
        masks.append(stayed)
    assert not torch.equal(*masks)


def test_nothing_is_dropped_at_rate_0() -> None:
    weight = torch.nn.Parameter(torch.randn(3, 3))
    dropped = DroppedWeights([weight], 0.0)
    version, state = weight._version, torch.get_rng_state()
    dropped.drop()
    dropped.restore()
    assert weight._version == version
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_lies_between_0_and_1(rate: float) -> None:
    with pytest.raises(ValueError, match=r"recurrent_dropout must be in \[0, 1\)"):
        DroppedWeights([torch.zeros(2, 2)], rate)
