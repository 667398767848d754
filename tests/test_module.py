"""What an update reads and learns from: windows that overlap, losses that are too high, rates."""

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.deep import StackedRnn
from hornn.cells.highway import HighwayRnn
from hornn.cells.hornn import GatedHornn
from hornn.data.streams import ChunkStream
from hornn.kernels import library
from hornn.module import TruncatedBptt
from hornn.network import SequenceModel
from hornn.optim.adaptive import AveragedSGD
from hornn.optim.descent import MomentumSGD
from hornn.optim.divergence import DivergenceError
from hornn.optim.schedules import InverseTime
from small_models import B, H, T, V, build, training


def chunks(count: int) -> list[Any]:
    ids = np.random.default_rng(0).integers(V, size=B * T * count)
    return list(ChunkStream(ids, 0, B, T))


@pytest.mark.parametrize("window", [T, 2 * T, 3 * T, 100 * T])
def test_gradients_flow_back_through_the_window_and_no_further(window: int) -> None:
    """With weights that stay, the k-th update's gradient is that of one pass whose state is cut at the window."""
    network = build()
    module = training(network, bptt_window=window)
    stream = chunks(6)
    for k, chunk in enumerate(stream):
        network.zero_grad()
        if chunk.first:
            module.states["train"] = network.initial_state(B)
        read = [*module.window, chunk.inputs]
        features, later = module.read_window(read, module.states["train"])
        module.pass_on(read, later)
        loss = network.head.loss(features, chunk.targets)
        loss.backward()
        found = [p.grad.clone() for p in network.parameters() if p.grad is not None]

        network.zero_grad()
        start = max(0, k + 1 - window // T)
        state = network.initial_state(B)
        with torch.no_grad():
            for past in stream[:start]:
                _, state = network(past.inputs, state)
        features, _ = network(torch.cat([past.inputs for past in stream[start : k + 1]]), state)
        reference = network.head.loss(features[-T:], chunk.targets)
        reference.backward()
        assert_close(loss, reference, rtol=1e-12, atol=0)
        expected = [p.grad for p in network.parameters() if p.grad is not None]
        assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("window", [None, 2 * T])
def test_what_dropout_drops_is_not_saturated(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    network = build(dropout=0.5)
    module, dropped = training(network, bptt_window=window), []
    monkeypatch.setattr(module, "manual_backward", lambda loss: loss.backward())
    monkeypatch.setattr(network.head, "loss", lambda y, *_: dropped.append(y) or y.sum())
    inputs = [chunk.inputs for chunk in chunks(2)][: module.window_chunks]
    features, *_ = module.differentiate(inputs, network.initial_state(B), inputs[-1], 1.0)
    assert network.saturation(dropped[0]) > 0.3
    assert network.saturation(features) == 0.0
    assert_close(dropped[0], torch.where(dropped[0] == 0, 0.0, 2 * features))


def test_a_loss_that_is_high_for_a_while_is_no_divergence() -> None:
    """One that stays above four times that of a uniform guess for 100 updates is, and one that is no number at once."""
    module, chunk = training(build()), chunks(1)[0]
    high, low = 4.1 * math.log(V) * chunk.count, 3.9 * math.log(V) * chunk.count
    for nll in [high] * 99 + [low] + [high] * 99:
        module.watch.check(nll, chunk.count)
    with pytest.raises(
        DivergenceError, match=r"is 9.831, above 9.592 nats per token for 100 updates in a row"
    ):
        module.watch.check(high, chunk.count)
    with pytest.raises(DivergenceError, match="is nan nats per token"):
        training(build()).watch.check(math.nan, chunk.count)


@torch.no_grad()
def test_a_score_that_is_no_number_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean over the other chunks would be a perplexity too good to be true."""
    network, (chunk, other) = build(), chunks(2)
    module = training(network)
    module.score(chunk, "valid")
    assert module.tally("valid").mean_nll == pytest.approx(math.log(V), rel=0.1)
    monkeypatch.setattr(network.head, "nll", lambda _, targets: torch.full(targets.shape, math.nan))
    module.score(other, "valid")
    assert math.isnan(module.tally("valid").mean_nll)


@pytest.mark.parametrize("window", [3, 6])
def test_a_window_is_a_multiple_of_the_chunk(window: int) -> None:
    with pytest.raises(
        ValueError, match=rf"bptt_window must be a multiple of data.seq_len=4, or null, got {window}"
    ):
        training(build(), bptt_window=window)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("build_cell", [partial(GatedHornn, order=3), HighwayRnn, StackedRnn])
def test_max_norm_spares_embeddings_and_biases_that_are_a_matrix(build_cell: Any, native: bool) -> None:
    if native and library.why_not():
        pytest.skip(str(library.why_not()))
    network = SequenceModel([1] * V, partial(build_cell, hidden_size=H, bias=True), H)
    module = training(network)
    module.build_optimizer = partial(MomentumSGD, lr=1.0, max_norm=0.5)
    optimizer = module.configure_optimizers()
    assert isinstance(optimizer, MomentumSGD)
    optimizer.native = native
    for parameter in network.parameters():
        parameter.data.fill_(1.0)
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    free = {name for name, p in network.named_parameters() if torch.equal(p, torch.ones_like(p))}
    assert free == {name for name, _ in network.named_parameters() if ".b" in name} | {"embedding.weight"}


def test_pretrained_parameters_learn_slower() -> None:
    network = build()
    module = training(
        network, pretrained=dict.fromkeys(["cells.0.W_h", "embedding.weight"]), pretrained_lr=0.1
    )
    rates = {id(p): g["initial_lr"] for g in module.configure_optimizers().param_groups for p in g["params"]}
    found = {name: rates[id(p)] for name, p in network.named_parameters()}
    slow = {name for name, rate in found.items() if rate == pytest.approx(0.1)}
    assert slow == {"cells.0.W_h", "embedding.weight"}
    assert {rate for name, rate in found.items() if name not in slow} == {1.0}


@pytest.mark.parametrize("pretrained_lr", [0.1, 10.0])
@pytest.mark.parametrize(
    ("pretrained", "scaled"), [({"embedding.weight": None}, False), (dict(build().named_parameters()), True)]
)
def test_the_learning_rate_is_that_of_parameters_that_are_not_pretrained(
    pretrained: Any, scaled: bool, pretrained_lr: float
) -> None:
    """Where there are any."""
    module = training(build(), pretrained=pretrained, pretrained_lr=pretrained_lr)
    optimizer = module.configure_optimizers()
    module.trainer.optimizers = [optimizer]
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"]
    assert module.learning_rate == (pretrained_lr if scaled else 1.0)


def brought_back(
    monkeypatch: pytest.MonkeyPatch, optimizer: Callable[..., Any], before: int, after: int = 2
) -> tuple[TruncatedBptt, dict[str, Tensor]]:
    """A training whose first weights came back between some updates with a gradient of 1; and these weights."""
    module = training(build())
    weights = list(module.network.parameters())
    monkeypatch.setattr(type(module), "optimizer", made := optimizer(weights))
    monkeypatch.setattr(module, "record_updates", lambda: None)
    first = {name: weight.clone() for name, weight in module.state_dict().items()}
    for update in range(before + after):
        if update == before:
            module.restore(first)
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        made.step()
    return module, first


def test_weights_that_come_back_begin_a_new_average(monkeypatch: pytest.MonkeyPatch) -> None:
    module, first = brought_back(monkeypatch, partial(AveragedSGD, lr=1.0, start=3), before=4)
    module.swap_averages()
    for name, weight in module.state_dict().items():
        assert_close(weight, first[name] - 1.5)  # the mean of -1 and -2


@pytest.mark.parametrize(("reduction", "scale"), [("mean", 1 / (B * T)), ("sum_time", 1 / B), ("sum", 1.0)])
def test_a_loss_is_divided_as_its_reduction_says(reduction: str, scale: float) -> None:
    (chunk,) = chunks(1)
    assert training(build(), loss_reduction=reduction).loss_scale(chunk) == pytest.approx(scale)


def test_weights_that_come_back_have_no_momentum(monkeypatch: pytest.MonkeyPatch) -> None:
    module, first = brought_back(monkeypatch, partial(MomentumSGD, lr=1.0, momentum=0.5), before=2, after=1)
    for name, weight in module.state_dict().items():
        assert_close(weight, first[name] - 1)


def test_noise_and_dropped_weights_leave_no_trace_together(monkeypatch: pytest.MonkeyPatch) -> None:
    network = build()
    module, (chunk,) = training(network, weight_noise=0.1, recurrent_dropout=0.5), chunks(1)
    monkeypatch.setattr(module, "manual_backward", lambda loss: loss.backward())
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    module.differentiate([chunk.inputs], network.initial_state(B), chunk.targets, 1.0)
    assert_close(dict(module.state_dict()), before, rtol=0, atol=0)


def test_a_stream_that_begins_anew_reads_nothing_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    module, read = training(build(), bptt_window=2 * T), []
    module.trainer = SimpleNamespace(world_size=1, global_step=0, log_every_n_steps=0)  # type: ignore[assignment]
    monkeypatch.setattr(type(module), "optimizer", SimpleNamespace(param_groups=[]))

    def update(chunk: Any) -> None:
        read.append(len(module.window))
        module.pass_on([*module.window, chunk.inputs], module.states["train"])

    monkeypatch.setattr(module, "update", update)
    for chunk in 2 * chunks(3):
        module.training_step(chunk, 0)
    assert read == [0, 1, 1, 0, 1, 1]


def test_an_update_has_the_rate_of_the_updates_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one after the validation that got worse is still at the whole rate."""
    module, (chunk,), group = training(build()), chunks(1), {"initial_lr": 3.0}
    module.schedule = InverseTime(tau=2)
    module.schedule.decide(1, 2, 5.0)
    module.schedule.decide(2, 4, 6.0)
    monkeypatch.setattr(type(module), "optimizer", SimpleNamespace(param_groups=[group]))
    monkeypatch.setattr(module, "update", lambda chunk: None)
    rates = []
    for step in range(3, 7):
        module.trainer = SimpleNamespace(world_size=1, global_step=step, log_every_n_steps=0)  # type: ignore[assignment]
        module.training_step(chunk, 0)
        rates.append(group["lr"])
    assert rates == pytest.approx([3, 3, 3 / 1.5, 3 / 2])


def test_all_words_of_a_window_have_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the chunks that are read again have noise, too."""
    if library.why_not():
        pytest.skip("needs the native kernels")
    network, noisy = build().float(), []
    module, (first, second) = training(network, bptt_window=2 * T, weight_noise=0.1), chunks(2)
    module.noise.native, clean = True, network.table.detach().clone()

    def look(loss: Tensor) -> None:
        noisy.extend((network.table != clean).any(1).nonzero().flatten().tolist())
        loss.backward()

    monkeypatch.setattr(module, "manual_backward", look)
    module.differentiate([first.inputs, second.inputs], network.initial_state(B), second.targets, 1.0)
    assert noisy == sorted({*first.inputs.flatten().tolist(), *second.inputs.flatten().tolist()})
    assert {*noisy} > {*second.inputs.flatten().tolist()}


def test_what_a_run_carries_is_taken_up() -> None:
    module, other, (chunk,) = training(build()), training(build()), chunks(1)
    module.states["train"], module.window = module.network.initial_state(B), [chunk.inputs]
    module.watch.above, module.grad_norms = 7, [0.5]
    module.tally("train").add(torch.tensor(3.0), 2)
    strategy = SimpleNamespace(root_device=torch.device("cpu"))
    other.trainer = SimpleNamespace(world_size=1, global_rank=0, strategy=strategy)  # type: ignore[assignment]
    other.carry_on(module.carried())
    assert (other.watch.above, other.grad_norms, other.tally("train").mean_nll) == (7, [0.5], 1.5)
    assert torch.equal(other.window[0], chunk.inputs)
