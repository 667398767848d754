"""The training recipes: windows that overlap, noise, averages, sparse starts, weights from another run."""

import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hornn.cells.deep import DeepRnn, StackedRnn
from hornn.cells.hornn import FofeHornn
from hornn.cells.lstm import Lstm
from hornn.checkpoint import CARD, FORMAT
from hornn.data.streams import ChunkStream
from hornn.data.vocabulary import Vocabulary
from hornn.experiment import start_from
from hornn.inference import score_dynamically, score_stream
from hornn.initial import make_sparse
from hornn.kernels import native
from hornn.module import TruncatedBptt
from hornn.network import LanguageModel, detach_all
from hornn.optim import (
    AdamW,
    AveragedSGD,
    Constant,
    DivergenceError,
    HalveOnPlateau,
    InverseTime,
    MomentumSGD,
    WeightNoise,
)
from hornn.scan import scan

V, H, B, T = 11, 6, 3, 4


def build(seed: int = 0, **options: Any) -> LanguageModel:
    torch.manual_seed(seed)
    cell = partial(FofeHornn, hidden_size=H, order=2)
    return LanguageModel([1] * V, cell, H, **{"precision": "fp32", **options}).double()


def chunks(count: int) -> list[Any]:
    ids = np.random.default_rng(0).integers(V, size=B * T * count)
    return list(ChunkStream(ids, 0, B, T))


def training(network: LanguageModel, **options: Any) -> TruncatedBptt:
    module = TruncatedBptt(network, partial(MomentumSGD, lr=1.0), Constant(), seq_len=T, **options)
    module.trainer = SimpleNamespace(world_size=1)  # type: ignore[assignment]
    return module


@pytest.mark.parametrize("window", [T, 2 * T, 3 * T, 100 * T])
def test_gradients_flow_back_through_the_window_and_no_further(window: int) -> None:
    """With weights that stay, the k-th update's gradient is that of one pass whose state is cut at the window."""
    network = build()
    module = training(network, bptt_window=window)
    stream = chunks(6)
    for k, chunk in enumerate(stream):
        network.zero_grad()
        module.begin(chunk)
        loss = network.head.loss(module.read_window(chunk), chunk.targets)
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


def test_a_loss_that_is_high_for_a_while_is_no_divergence() -> None:
    """One that stays above four times that of a uniform guess for 100 updates is, and one that is no number at once."""
    module, chunk = training(build()), chunks(1)[0]
    high, low = 4.1 * math.log(V) * chunk.count, 3.9 * math.log(V) * chunk.count
    for nll in [high] * 99 + [low] + [high] * 99:
        module.check_nll(nll, chunk)
    with pytest.raises(
        DivergenceError, match=r"is 9.831, above 9.592 nats per token for 100 updates in a row"
    ):
        module.check_nll(high, chunk)
    with pytest.raises(DivergenceError, match="is nan nats per token"):
        training(build()).check_nll(math.nan, chunk)


@pytest.mark.parametrize("window", [3, 6])
def test_a_window_is_a_multiple_of_the_chunk(window: int) -> None:
    with pytest.raises(ValueError, match=rf"bptt_window must be a multiple of data.seq_len=4, got {window}"):
        training(build(), bptt_window=window)


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


def test_sparse_start() -> None:
    torch.manual_seed(0)
    weight = torch.randn(2, 30, 50)
    make_sparse(weight, 20)
    assert (weight != 0).sum(-1).tolist() == [[20] * 30] * 2
    assert_close(torch.linalg.matrix_norm(weight, ord=2), torch.ones(2))
    with pytest.raises(ValueError, match=r"recurrent_fan_in must be at most the state's width 50, got 51"):
        make_sparse(weight, 51)


def test_network_starts_as_asked() -> None:
    cell = partial(FofeHornn, hidden_size=80, order=2)
    network = LanguageModel(
        [1] * 500, cell, 90, init_std=0.05, embedding_std=0.2, output_std=0.0, recurrent_fan_in=20
    )
    assert float(network.cells[0].W_in.detach().std()) == pytest.approx(0.05, rel=0.05)
    assert float(network.embedding.weight.detach().std()) == pytest.approx(0.2, rel=0.05)
    assert not network.head.W_out.any()
    assert (network.cells[0].W_h != 0).sum(-1).unique().tolist() == [20]


def test_states_start_where_the_network_says() -> None:
    state = build(initial_value=0.1).initial_state(2)
    assert_close(state[0].history, torch.full((2, 2, H), 0.1, dtype=torch.float64))
    assert not build().initial_state(2)[0].history.any()


def test_state_gradient_is_bounded_at_every_step() -> None:
    torch.manual_seed(0)
    cell = Lstm(input_size=3, hidden_size=4).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    norms = {}
    for bound in (None, 1e6, 1e-3):
        state = cell.initial_state(2)
        h = state.h.requires_grad_()
        y, _ = scan(cell, x, state, bound)
        (gradient,) = torch.autograd.grad(y[-1].sum() * 100, h)
        norms[bound] = float(gradient.norm())
    assert norms[None] == pytest.approx(norms[1e6])
    assert norms[1e-3] <= 1e-3 < norms[None]


@pytest.mark.parametrize("variational", [False, True])
def test_dropout_is_one_mask_a_step_or_one_for_all(variational: bool) -> None:
    network = build(dropout=0.5, variational=variational)
    x = torch.ones(40, 1, 200, dtype=torch.float64)
    dropped = network.drop(x)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.25)
    assert bool((dropped == dropped[0]).all()) == variational
    network.eval()
    assert network.drop(x) is x


def test_tied_weights_are_one_matrix() -> None:
    network = build(tie_weights=True)
    assert network.head.W_out is network.embedding.weight
    assert network.num_parameters == build().num_parameters - V * H
    optimizer = training(network).configure_optimizers()
    members = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(members) == len(set(members)) == len(list(network.parameters()))
    with pytest.raises(ValueError, match="as wide as the embedding"):
        LanguageModel([1] * V, partial(FofeHornn, hidden_size=H), H + 1, tie_weights=True)


DEEP = partial(DeepRnn, shortcuts=True)


@pytest.mark.parametrize(
    ("first", "then", "fresh"),
    [
        (DEEP, partial(DEEP, output_depth=2), {"cells.0.predict.0.W"}),
        (partial(StackedRnn, depth=1), StackedRnn, {"cells.0.U.0", "cells.0.W_h.1"}),
    ],
)
def test_a_deeper_network_takes_over_all_but_what_is_new_and_the_output(
    tmp_path: Path, first: Any, then: Any, fresh: set[str]
) -> None:
    """The DOT(S)-RNN starts from a DT(S)-RNN, the sRNN from a RNN (Pascanu et al. 2014, section 5.1)."""
    torch.manual_seed(0)
    trained, network = (
        LanguageModel([1] * V, partial(cell, hidden_size=H, embedded_input=True), precision="fp32")
        for cell in (first, then)
    )
    card = {"format": FORMAT, "vocabulary": {"words": ["a", "<eos>"]}}
    weights = {f"network.{name}": value for name, value in trained.state_dict().items()}
    torch.save({CARD: card, "state_dict": weights}, tmp_path / "best.ckpt")
    words = Vocabulary(["a", "<eos>"], [1, 1])
    copied = start_from(network, str(tmp_path / "best.ckpt"), words)
    found = dict(network.named_parameters())
    assert found.keys() - copied == {"head.W_out", *fresh}
    for name in copied:
        assert_close(found[name], trained.get_parameter(name), rtol=0, atol=0)


def test_pretrained_parameters_learn_slower() -> None:
    network = build()
    module = training(network, pretrained={"cells.0.W_h", "embedding.weight"}, pretrained_lr=0.1)
    rates = {id(p): g["initial_lr"] for g in module.configure_optimizers().param_groups for p in g["params"]}
    found = {name: rates[id(p)] for name, p in network.named_parameters()}
    slow = {name for name, rate in found.items() if rate == pytest.approx(0.1)}
    assert slow == {"cells.0.W_h", "embedding.weight"}
    assert {rate for name, rate in found.items() if name not in slow} == {1.0}


@pytest.mark.parametrize("start", [1, 2, 4])
def test_averaged_sgd_swaps_in_the_mean_of_its_weights(start: int) -> None:
    w = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = AveragedSGD([w], lr=0.1, start=start)
    seen = []
    for _ in range(6):
        optimizer.zero_grad()
        (w**2).sum().backward()
        optimizer.step()
        seen.append(w.detach().clone())
    last = w.detach().clone()
    optimizer.swap_averages()
    assert_close(w.detach(), torch.stack(seen[start - 1 :]).mean(0))
    optimizer.swap_averages()
    assert_close(w.detach(), last, rtol=0, atol=0)


def test_adamw_is_torchs_with_a_clip() -> None:
    ours, theirs = (torch.nn.Parameter(torch.tensor([3.0, -4.0])) for _ in range(2))
    clipped = AdamW([ours], lr=0.1, clip=1.0)
    plain = torch.optim.AdamW([theirs], lr=0.1)
    for _ in range(3):
        for w, optimizer in ((ours, clipped), (theirs, plain)):
            optimizer.zero_grad()
            (10 * w**2).sum().backward()
            if optimizer is plain:
                torch.nn.utils.clip_grad_norm_([theirs], 1.0)
            version = w._version
            optimizer.step()
            assert w._version > version  # by which a copy in bf16 knows that it is stale
    assert_close(ours, theirs)
    assert clipped.grad_norm > 1


def test_inverse_time_starts_at_the_first_rise() -> None:
    schedule = InverseTime(tau=10)
    rates = []
    for step, nll in ((100, 5.0), (200, 4.0), (300, 4.5), (400, 4.0)):
        schedule.decide(1, step, nll)
        rates.append(schedule.rate(step + 5))
    assert rates == pytest.approx([1, 1, 1 / 1.5, 1 / (1 + 105 / 10)])


def test_plateau_with_a_relative_threshold() -> None:
    strict, lenient = HalveOnPlateau(relative_threshold=0.01), HalveOnPlateau(relative_threshold=-0.01)
    for schedule in (strict, lenient):
        schedule.decide(1, 1, 5.0)
        schedule.decide(2, 2, 4.99)
        schedule.decide(3, 3, 5.02)
    assert (strict.scale, lenient.scale) == (0.25, 1.0)


@pytest.mark.parametrize("tie_weights", [False, True])
def test_dynamic_evaluation_is_gradient_descent(tie_weights: bool) -> None:
    ids = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])
    network, reference = build(tie_weights=tie_weights), build(tie_weights=tie_weights)
    scores = score_dynamically(network, ids, 0, 4, lr=0.3)
    descent = torch.optim.SGD(reference.parameters(), lr=0.3)
    state, expected = reference.initial_state(1), []
    for chunk in ChunkStream(ids, 0, 1, 4):
        features, state = reference(chunk.inputs, detach_all(state))
        nll = reference.head.nll(features, chunk.targets)
        expected += nll.flatten().tolist()
        descent.zero_grad()
        nll.mean().backward()
        descent.step()
    assert_close(scores, np.array(expected), rtol=1e-12, atol=0)
    for found, weight in zip(network.parameters(), reference.parameters(), strict=True):
        assert_close(found, weight)


def test_dynamic_evaluation_scores_before_it_learns() -> None:
    ids = np.array([3, 1, 4, 1, 5, 9, 2, 6] * 30)
    still = score_stream(build(), ids, 0, 1, 8)
    learned = score_dynamically(build(), ids, 0, 8, lr=0.3)
    assert_close(learned[:8], still[:8])
    assert learned[-40:].mean() < still[-40:].mean() - 0.2
    tiny = score_dynamically(build(), ids, 0, 8, lr=1e-12)
    assert_close(tiny, still, rtol=1e-8, atol=0)
    with pytest.raises(ValueError, match="dynamic_lr must be > 0"):
        score_dynamically(build(), ids, 0, 8, lr=math.nan)
