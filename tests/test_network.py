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
