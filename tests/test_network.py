"""The network around the cells, and the table that counts its weights."""

from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from hornn.heads import TwoLevelSoftmaxHead
from hornn.network import LanguageModel
from hornn.parameters import MARKS, published_count, render
from reference.cases import MODEL_FOLDER, MODEL_NAMES

ROOT = Path(__file__).parents[1]
STACKED = {"memn2n": {"embedded_input": False}}  # its embedding is twice as wide as what a layer passes on


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_cell_stacks_and_learns(name: str) -> None:
    """Two layers of the cell of conf/model, with the two-level head, lower the loss of a text they see again."""
    torch.manual_seed(0)
    arguments = {"hidden_size": 24, **STACKED.get(name, {})}
    cell = instantiate(OmegaConf.merge(OmegaConf.load(MODEL_FOLDER / f"{name}.yaml"), arguments))
    network = LanguageModel(list(range(50, 0, -1)), cell, num_layers=2, head=TwoLevelSoftmaxHead)
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


@pytest.mark.parametrize(
    ("name", "learns", "units"),
    [("hornn_fofe", "learn_alpha", 1), ("fofe_fnn", "learn_alpha", 1), ("scrn", "adaptive", 5)],
)
def test_learned_factors_are_those_of_all_layers(name: str, learns: str, units: int) -> None:
    conf = OmegaConf.load(MODEL_FOLDER / f"{name}.yaml")
    arguments = {"hidden_size": 4, "alpha": 0.7, **({"context_size": units} if name == "scrn" else {})}
    fixed, learned = (instantiate(OmegaConf.merge(conf, arguments, {learns: on})) for on in (False, True))
    assert LanguageModel([3, 2, 1], fixed, num_layers=2).learned_factors() == {}
    spread = {"alpha_min": 0.7, "alpha_max": 0.7} if units > 1 else {}
    assert LanguageModel([3, 2, 1], learned).learned_factors() == pytest.approx({"alpha": 0.7, **spread})
    network = LanguageModel([3, 2, 1], learned, num_layers=2)
    with torch.no_grad():
        network.cells[1].beta.add_(100.0)  # whose sigmoid is 1
    assert network.learned_factors() == pytest.approx({"alpha": 0.85, "alpha_min": 0.7, "alpha_max": 1.0})


def test_published_counts_carry_their_precision() -> None:
    assert published_count("8.3M") == pytest.approx((8_300_000, 100_000))
    assert published_count("540K") == pytest.approx((540_000, 1_000))


def test_the_readme_shows_the_table_of_today() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = readme.partition(f"<!-- {MARKS}: begin -->")[2].partition(f"<!-- {MARKS}: end -->")[0]
    assert shown.strip() == render()
    assert "| no |" not in shown


def test_the_smoke_sweeps_leave_no_cell_out() -> None:
    swept: list[str] = []
    for name in ("smoke_all_cells", "smoke_relu_cells"):
        sweep = OmegaConf.load(ROOT / "sweeps" / f"{name}.yaml")
        swept += [model.strip() for model in sweep.hydra.sweeper.params.model.split(",")]
    assert sorted(swept) == MODEL_NAMES
