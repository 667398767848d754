"""What the cells are tested on: cells built from conf/model, and weights, inputs and states from a seed."""

import os
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import torch
from omegaconf import OmegaConf
from torch import Tensor

from hornn.parameters import TABLE
from hornn.recipe import COUNTED

MODEL_FOLDER = Path(__file__).parents[2] / "conf" / "model"
MODELS = {path.stem: OmegaConf.load(path) for path in sorted(MODEL_FOLDER.glob("*.yaml"))}
COUNT_NAMES = [name for name, model in MODELS.items() if model.get(COUNTED)]
MODEL_NAMES = [name for name in MODELS if name not in COUNT_NAMES]  # the cells
# The cells that come along: a cell that somebody adds need not start its weights or its state as these do.
SHIPPED = {row.model for row in OmegaConf.load(TABLE).rows} & set(MODEL_NAMES)
# The cells whose contract is tested: the shipped ones, or the cells of a user's folder that the environment names.
OWN = os.environ.get("HORNN_CONFIG_DIR")
CELL_FOLDER = Path(OWN, "model") if OWN else MODEL_FOLDER
CELLS = sorted(path.stem for path in CELL_FOLDER.glob("*.yaml")) if OWN else MODEL_NAMES
assert CELLS, f"HORNN_CONFIG_DIR={OWN} must name a folder that holds model/NAME.yaml"
# Sizes that the width of the state says nothing of.
SMALL: dict[str, dict[str, Any]] = {"memn2n": {"memory_size": 4}}


def build_cell(name: str, input_size: int, folder: Path = MODEL_FOLDER, **arguments: Any) -> Any:
    """The cell that `<name>.yaml` in a folder, conf/model, constructs, with these of its arguments replaced."""
    conf = OmegaConf.merge(OmegaConf.load(folder / f"{name}.yaml"), arguments)
    return hydra.utils.instantiate(conf)(input_size=input_size)


def seeded(seed: int) -> torch.Generator:
    """A source of random numbers of its own, so that no test depends on another."""
    return torch.Generator().manual_seed(seed)


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    """Standard normal numbers in float64."""
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def fill(cell: Any, generator: torch.Generator, scale: float = 0.4) -> Any:
    """The cell in float64 with every parameter, biases too, drawn from N(0, scale^2)."""
    cell.double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.copy_(scale * draw(generator, *parameter.shape))
    return cell


def draw_state(cell: Any, batch_size: int, generator: torch.Generator) -> Any:
    """A random state of the cell's own kind and shapes."""
    state = cell.initial_state(batch_size)
    return type(state)(*(draw(generator, *tensor.shape) for tensor in state))


def as_arrays(tensors: Any) -> tuple[np.ndarray, ...]:
    """Tensors as the NumPy arrays that the transcriptions read."""
    return tuple(tensor.detach().numpy() for tensor in tensors)


def weights_of(cell: Any) -> dict[str, np.ndarray]:
    """The cell's parameters by name as NumPy arrays."""
    return {name: parameter.detach().numpy() for name, parameter in cell.named_parameters()}
