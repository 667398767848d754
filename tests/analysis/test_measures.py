"""Each measurement against its definition, read off the network by other means."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.analysis import gradients, known_words, signals
from hornn.analysis.analyse import measure_stage, summarise
from hornn.analysis.gradients import ALL, measure_gradients, norms_by_lag, reach
from hornn.analysis.known_words import describe_known, effective_memory, find_blocks, score_known
from hornn.analysis.signals import measure_signals
from hornn.analysis.stages import AFTER, DURING, START, Stage
from hornn.analysis.unroll import find_places, windows
from hornn.cells.elman import Rnn
from hornn.cells.hornn import FofeHornn
from hornn.cells.lstm import Lstm
from hornn.cells.scrn import Scrn
from hornn.network import SequenceModel, detach_all

V, LAGS = 9, 5


class DelayedState(NamedTuple):
    h: Tensor
    u: Tensor  # of the last step's input alone


class Delayed(Rnn):
    """The RNN that reads the last input once more."""

    def initial_state(self, batch_size: int) -> Any:
        return DelayedState(*(self.zeros(batch_size, self.hidden_size) for _ in range(2)))

    def step(self, u_t: Tensor, state: Any) -> Any:
        h_t, _ = super().step(u_t + state.u, state)
        return h_t, DelayedState(h_t, u_t)


CELLS = {
    "hornn": partial(FofeHornn, hidden_size=4, order=3),
    "lstm": partial(Lstm, hidden_size=4),
    "delayed": partial(Delayed, hidden_size=4),
    "scrn": partial(Scrn, hidden_size=4, context_size=2, embedded_input=False),
}


def build(name: str, **options: Any) -> SequenceModel:
    torch.manual_seed(3)
    built = SequenceModel([1] * V, CELLS[name], 4, init_std=0.8, precision="fp32", backend="eager", **options)
    return built.double().eval().requires_grad_(False)


IDS = np.random.default_rng(0).integers(V, size=60)


@pytest.mark.parametrize(
    ("name", "layers"), [("hornn", 1), ("lstm", 1), ("scrn", 1), ("delayed", 1), ("hornn", 2), ("delayed", 2)]
)
def test_norms_are_those_of_finite_differences(name: str, layers: int) -> None:
    """A unit that step t - k made is moved a little, and the loss of token t is looked at again."""
    network, eps = build(name, num_layers=layers), 1e-6
    before, targets = next(windows(IDS, find_places(len(IDS), 2 * LAGS, 3), 2 * LAGS, columns=3))
    _, state = network(before[:LAGS], network.initial_state(3))
    norms = norms_by_lag(network, before[LAGS:], targets, state)

    def loss(k: int, moved: Any) -> torch.Tensor:
        return network.head.nll(network(before[2 * LAGS - k :], moved)[0][-1:], targets[None])[0]

    for k in (1, 2, LAGS):
        _, there = network(before[: 2 * LAGS - k], network.initial_state(3))
        squares: dict[str, torch.Tensor] = {}
        for number, cell in enumerate(network.cells):
            for part, values in cell.newest(there[number]).items():
                for unit in range(values.size(-1)):
                    losses = []
                    for sign in (-1, 1):
                        moved = detach_all(tuple(type(s)(*(t.clone() for t in s)) for s in there))
                        cell.newest(moved[number])[part][..., unit] += sign * eps
                        losses.append(loss(k, moved))
                    key = part if layers == 1 else f"layer {number + 1}: {part}"
                    slope = (losses[1] - losses[0]) / (2 * eps)
                    squares[key] = squares.get(key, torch.zeros(3).double()) + slope**2
        assert_close(norms[ALL][k - 1], sum(squares.values()).sqrt(), rtol=1e-4, atol=1e-9)  # type: ignore[union-attr]
        if len(squares) > 1:
            assert norms.keys() == {ALL, *squares}
            for part, expected in squares.items():
                assert_close(norms[part][k - 1], expected.sqrt(), rtol=1e-4, atol=1e-9)


def test_known_words_are_all_that_is_read() -> None:
    network = build("hornn")
    blocks = find_blocks(len(IDS), LAGS, 12)
    scores = score_known(network, IDS, blocks, LAGS)
    assert blocks.shape == (1, 12)
    for place, target in enumerate(blocks.ravel()):
        for k in range(1, LAGS + 1):
            read = torch.from_numpy(IDS[target - k : target])[:, None]
            features, _ = network(read, network.initial_state(1))
            expected = -network.head.log_probs(features[-1, 0])[IDS[target]]
            assert scores[k - 1, place] == pytest.approx(float(expected), rel=1e-12)


def test_blocks_are_spread_and_stay_inside() -> None:
    blocks = find_blocks(5000, 100, 1000)
    assert blocks.shape == (5, 200)
    assert (blocks[0, 0], blocks[-1, -1]) == (100, 5000 - 100 - 1)
    assert find_blocks(5000, 100, 250).shape == (2, 125), "no target is left out"
    said = "the text has 1,199 tokens, and lags=100 and targets=1000 need more than 1,199"
    with pytest.raises(ValueError, match=said):
        find_blocks(1199, 100, 1000)
    assert len(set(find_blocks(1200, 100, 1000).flat)) == 1000, "no token is a target twice"


def test_effective_memory_is_where_the_perplexity_stays() -> None:
    assert effective_memory({"perplexity": [200, 100.5, 140, 100.9, 99, 100], "whole": 100}) == 4
    assert effective_memory({"perplexity": [99, 100], "whole": 100}) == 1
    assert effective_memory({"perplexity": [200, 180], "whole": 100}) == 2


def test_reach_is_the_last_lag_above_one_percent() -> None:
    assert reach({ALL: {"q50": [2.0, 0.5, 0.03, 0.01, 1.0]}}) == 3
    assert reach({ALL: {"q50": [2.0, 1.0]}}) == 2
    assert reach({ALL: {"q50": [0.0, 0.0]}}) == 0, "where nothing arrives, nothing reaches back"


def test_words_are_told_apart_by_their_counts() -> None:
    known = describe_known(np.log([[4.0, 9.0]]), np.log([2.0, 8.0]), np.array([0, 1]), [5, 50])
    assert known["perplexity"] == pytest.approx([6.0])
    assert known["whole"] == pytest.approx(4.0)
    assert {label: curve["whole"] for label, curve in known["by_count"].items()} == pytest.approx(
        {"below 10": 2.0, "10 to 99": 8.0}
    )


def test_a_class_of_words_begins_with_its_bound() -> None:
    counts = [9, 10, 99, 100]
    known = describe_known(np.zeros((1, 4)), np.log([1.0, 2.0, 3.0, 4.0]), np.arange(4), counts)
    assert {label: curve["targets"] for label, curve in known["by_count"].items()} == {
        "below 10": 1,
        "10 to 99": 2,
        "100 to 999": 1,
    }


def test_signals_are_those_of_the_cell() -> None:
    """With recurrent weights of 0 nothing is pooled; with large inputs every unit is saturated."""
    network = build("hornn")
    with torch.no_grad():
        network.cells[0].W_h.zero_()
        network.embedding.weight.fill_(100.0)
        network.cells[0].W_in.fill_(1.0)
    found = measure_signals(network, IDS, find_places(len(IDS), LAGS, 4), LAGS)
    assert found["saturation"] == [1.0] * LAGS
    assert list(found["paths"]) == ["input", "h_{t-1}", "h_{t-2}", "h_{t-3}", "pooled"]
    assert found["paths"]["pooled"] == {"low": 0.0, "high": 0.0, "rms": 0.0, "rms_by_step": [0.0] * LAGS}
    assert found["paths"]["input"]["rms"] == pytest.approx(400.0)


def test_a_network_that_was_trained_in_another_precision_is_measured() -> None:
    stage = Stage(AFTER, 1, SequenceModel([1] * V, CELLS["lstm"], precision="fp16"))
    assert measure_stage(stage, IDS, find_places(len(IDS), 2 * LAGS, 2), LAGS)["dtype"] == "float64"


@pytest.mark.parametrize(("first", "known"), [(START, True), (DURING, False)])
def test_weights_on_the_way_are_not_taken_for_those_before_training(first: str, known: bool) -> None:
    """A run that began with the weights of another one has none before training."""
    path = {"rms": 2.0, "low": -1.0, "high": 1.0}
    stages = [
        {
            "stage": name,
            "gradient": {ALL: {"q50": [1.0, 0.5]}},
            "paths": {"pooled": path},
            "saturation": [0.0],
        }
        for name in (first, AFTER)
    ]
    summary = summarise(stages, {"perplexity": [2.0], "whole": 2.0})
    assert ("gradient_reach_at_start" in summary) is known
    assert ("pooled_growth" in summary) is known
    assert summary["pooled_rms"] == 2.0


def test_a_signal_is_of_the_step_that_adds_it_up() -> None:
    """And its size is the one of the second half of the steps."""
    network, places = build("hornn"), find_places(len(IDS), LAGS, 4)
    cell, (before, _) = network.cells[0], next(windows(IDS, places, LAGS, columns=4))
    h, _ = network(before, network.initial_state(4))
    path = torch.zeros_like(h)  # before the first step all states are 0
    path[1:] = cell.alpha * h[:-1] @ cell.W_h[0].T  # type: ignore[operator,index]
    found = measure_signals(network, IDS, places, LAGS)["paths"]["h_{t-1}"]
    assert found["rms_by_step"] == pytest.approx(path.square().mean((1, 2)).sqrt().tolist())
    later = path[LAGS // 2 :]
    assert found["rms"] == pytest.approx(float(later.square().mean().sqrt()))
    assert [found["low"], found["high"]] == pytest.approx(np.quantile(later, (0.01, 0.99)).tolist())


def test_gradients_are_described_over_the_tokens() -> None:
    network, places = build("lstm"), find_places(len(IDS), 2 * LAGS, 7)
    found = measure_gradients(network, IDS, places, LAGS)
    before, targets = next(windows(IDS, places, 2 * LAGS, columns=7))
    _, state = network(before[:LAGS], network.initial_state(7))
    norms = norms_by_lag(network, before[LAGS:], targets, state)
    assert found.keys() == norms.keys() == {ALL, "h", "c"}
    for name, part in norms.items():
        assert found[name]["mean"] == pytest.approx(part.mean(1).tolist())
        for key, share in (("q25", 0.25), ("q50", 0.5), ("q75", 0.75)):
            assert found[name][key] == pytest.approx(np.quantile(part, share, axis=1).tolist())


def test_places_that_are_read_in_several_batches_are_measured_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By default there are 200, read 50 at a time; here 3, 2 and 2."""
    network, places = build("hornn"), find_places(len(IDS), 2 * LAGS, 7)
    with torch.no_grad():
        network.cells[0].W_in.mul_(6)  # some units are saturated, others are not
    measured = []
    for columns in (7, 3):
        monkeypatch.setattr(gradients, "COLUMNS", columns)
        monkeypatch.setattr(signals, "COLUMNS", columns)
        found = measure_signals(network, IDS, places, LAGS)
        parts = {**measure_gradients(network, IDS, places, LAGS), **found["paths"]}
        measured.append(
            {("saturation", ""): found["saturation"]}
            | {(name, what): value for name, part in parts.items() for what, value in part.items()}
        )
    assert measured[0].keys() == measured[1].keys()
    for key, value in measured[0].items():
        assert measured[1][key] == pytest.approx(value), key


def test_blocks_are_scored_each_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_words, "BLOCK", 4)
    network, blocks = build("hornn"), find_blocks(len(IDS), LAGS, 12)
    assert blocks.shape == (3, 4)
    alone = [score_known(network, IDS, block[None], LAGS) for block in blocks]
    np.testing.assert_allclose(
        score_known(network, IDS, blocks, LAGS), np.concatenate(alone, axis=1), rtol=1e-12
    )
