"""The network around the cells."""

from contextlib import ExitStack
from functools import partial

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch.testing import assert_close

from hornn.baselines.fofe_fnn import FofeFnn
from hornn.cells.hornn import FofeHornn
from hornn.heads.two_level import TwoLevelSoftmaxHead
from hornn.network import SequenceModel
from reference.cases import MODEL_FOLDER, MODEL_NAMES
from small_models import H, V, build, training


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_cell_stacks_and_learns(name: str) -> None:
    """Two layers of the cell of conf/model, with the two-level head, lower the loss of a text they see again."""
    torch.manual_seed(0)
    conf = OmegaConf.load(MODEL_FOLDER / f"{name}.yaml")
    cell = instantiate(OmegaConf.merge(conf, {"hidden_size": 24}))
    network = SequenceModel(list(range(50, 0, -1)), cell, num_layers=2, head=TwoLevelSoftmaxHead)
    tokens = torch.randint(50, (13, 4))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        features, state = network(tokens[:-1], network.initial_state(4))
        loss = network.head.loss(features, tokens[1:])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert len(state) == 2
    assert losses[-1] < losses[0] - 1


def test_weights_that_are_not_trained_do_not_count() -> None:
    network = build()
    number, weight = network.num_parameters, next(network.cells.parameters())
    weight.requires_grad_(False)
    assert network.num_parameters == number - weight.numel()


@pytest.mark.parametrize("name", ["srn", "scrn", "memn2n", "srnn", "dts_rnn"])
def test_a_layer_that_reads_a_state_has_a_matrix_for_it(name: str) -> None:
    """The input of the first layer alone is embedded already."""
    arguments = {"hidden_size": 4, "embedded_input": True}
    cell = instantiate(OmegaConf.merge(OmegaConf.load(MODEL_FOLDER / f"{name}.yaml"), arguments))
    names = {key for key, _ in SequenceModel([3, 2, 1], cell, num_layers=2).named_parameters()}
    assert {key for key in ("A", "W_in") if f"cells.0.{key}" in names} == set()
    assert {key for key in ("A", "W_in") if f"cells.1.{key}" in names} != set()


@pytest.mark.parametrize(
    ("name", "learns", "units"),
    [("hornn_fofe", "learn_alpha", 1), ("fofe_fnn", "learn_alpha", 1), ("scrn", "adaptive", 5)],
)
def test_learned_factors_are_those_of_all_layers(name: str, learns: str, units: int) -> None:
    conf = OmegaConf.load(MODEL_FOLDER / f"{name}.yaml")
    arguments = {"hidden_size": 4, "alpha": 0.7, **({"context_size": units} if name == "scrn" else {})}
    fixed, learned = (instantiate(OmegaConf.merge(conf, arguments, {learns: on})) for on in (False, True))
    assert SequenceModel([3, 2, 1], fixed, num_layers=2).learned_factors() == {}
    spread = {"alpha_min": 0.7, "alpha_max": 0.7} if units > 1 else {}
    assert SequenceModel([3, 2, 1], learned).learned_factors() == pytest.approx({"alpha": 0.7, **spread})
    network = SequenceModel([3, 2, 1], learned, num_layers=2)
    with torch.no_grad():
        network.cells[1].beta.add_(100.0)  # whose sigmoid is 1
    assert network.learned_factors() == pytest.approx({"alpha": 0.85, "alpha_min": 0.7, "alpha_max": 1.0})


def test_each_of_repeated_words_is_read_once() -> None:
    """Natively, where no dropout tells two of them apart; nothing else changes."""
    network = build().float()
    words = torch.arange(20).remainder(6).view(5, 4)
    once, every = (1, 6, H), (5, 4, H)

    def run() -> list[torch.Tensor]:
        features, _ = network(words, network.initial_state(4))
        return [features, *torch.autograd.grad(features.pow(2).sum(), list(network.cells.parameters()))]

    def read() -> tuple[int, ...]:
        return tuple(network.embed(words)[0].shape)

    assert read() == every
    expected = run()
    network.native = True
    assert read() == once
    assert_close(run(), expected)
    assert tuple(network.embed(torch.arange(8).view(2, 4))[0].shape) == (2, 4, H), "all of them differ"
    network.input_dropout = 0.5
    assert read() == every
    network.eval()
    assert read() == once


def test_states_start_where_the_network_says() -> None:
    state = build(initial_value=0.1).initial_state(2)
    assert_close(state[0].history, torch.full((2, 2, H), 0.1, dtype=torch.float64))
    assert not build().initial_state(2)[0].history.any()


@pytest.mark.parametrize(("name", "counter"), [("clockwork", "phase"), ("memn2n", "filled")])
def test_what_a_state_counts_starts_as_the_cell_says(name: str, counter: str) -> None:
    cell = instantiate(OmegaConf.merge(OmegaConf.load(MODEL_FOLDER / f"{name}.yaml"), {"hidden_size": 8}))
    state = SequenceModel([3, 2, 1], cell, initial_value=0.1).initial_state(2)[0]
    assert not getattr(state, counter).any()
    assert (state[0] == 0.1).all()


@pytest.mark.parametrize("variational", [False, True])
def test_dropout_is_one_mask_a_step_or_one_for_all(variational: bool) -> None:
    network = build(dropout=0.5, variational=variational)
    x = torch.ones(40, 1, 200, dtype=torch.float64)
    dropped = network.drop(x, network.dropout)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.25)
    assert bool((dropped == dropped[0]).all()) == variational
    network.eval()
    assert network.drop(x, network.dropout) is x


def test_inputs_may_be_dropped_at_a_rate_of_their_own() -> None:
    words = torch.arange(V).repeat(90, 1)

    def dropped(**rates: float) -> list[float]:
        """The shares of the inputs and of the features that are 0."""
        network = build(**rates)
        inputs, _ = network.embed(words)
        return [
            float((x == 0).double().mean()) for x in (inputs, network(words, network.initial_state(V))[0])
        ]

    assert dropped(dropout=0.5) == pytest.approx([0.5, 0.5], abs=0.05)
    assert dropped(dropout=0.5, input_dropout=0.2) == pytest.approx([0.2, 0.5], abs=0.05)
    assert dropped(dropout=0.5, input_dropout=0.0) == pytest.approx([0, 0.5], abs=0.05)
    assert dropped(input_dropout=0.2) == pytest.approx([0.2, 0], abs=0.05)


def test_tied_weights_are_one_matrix() -> None:
    network = build(tie_weights=True)
    assert network.head.W_out is network.embedding.weight
    assert network.num_parameters == build().num_parameters - V * H
    optimizer = training(network).configure_optimizers()
    members = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(members) == len(set(members)) == len(list(network.parameters()))
    with pytest.raises(ValueError, match=rf"set network.embedding_size={H}, or"):
        SequenceModel([1] * V, partial(FofeHornn, hidden_size=H), H + 1, tie_weights=True)


@pytest.mark.parametrize("key", ["network.recurrent_fan_in", "recurrent_dropout"])
def test_what_is_about_weights_on_a_state_needs_some(key: str) -> None:
    class Unnamed(FofeHornn):
        recurrent = ("U",)

    options = {"recurrent_fan_in": 2} if key.startswith("network.") else {}
    for kind, name in ((Unnamed, "Unnamed"), (FofeFnn, "FofeFnn")):
        with pytest.raises(
            ValueError, match=f"^{key} is about .* {name} has none .* attribute recurrent=\\("
        ):
            training(
                SequenceModel([1] * V, partial(kind, hidden_size=H), H, **options), recurrent_dropout=0.1
            )


@pytest.mark.parametrize(
    ("rates", "share"), [({"dropout": 0.5, "input_dropout": 0.0}, 0.5), ({"input_dropout": 0.5}, 0.0)]
)
def test_what_passes_between_layers_is_dropped_at_the_rate_of_the_network(
    monkeypatch: pytest.MonkeyPatch, rates: dict[str, float], share: float
) -> None:
    words = torch.arange(V).repeat(90, 1)
    network, read = build(num_layers=2, **rates), []
    project = network.cells[1].project_input
    monkeypatch.setattr(network.cells[1], "project_input", lambda x: read.append(x) or project(x))
    network(words, network.initial_state(V))
    assert float((read[0] == 0).double().mean()) == pytest.approx(share, abs=0.05)


def test_the_mode_comes_back_when_the_last_evaluation_ends() -> None:
    """Threads that share a network may be in it at once."""
    network = build(dropout=0.5).train()
    network.head.eval()
    one, two = network.evaluating(), network.evaluating()
    with two:
        with one:
            assert not network.training
        assert not network.training
    assert (network.training, network.head.training) == (True, False)
    first, second = ExitStack(), ExitStack()
    first.enter_context(network.evaluating())
    second.enter_context(network.evaluating())
    first.close()  # while the second one is still at work
    assert not any(module.training for module in network.modules())
    second.close()
    assert (network.training, network.head.training) == (True, False)


@pytest.mark.parametrize("name", ["variational", "output_bias", "tie_weights"])
def test_what_is_neither_true_nor_false_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"network\.{name} must be true or false, got 'no'"):
        build(**{name: "no"})
