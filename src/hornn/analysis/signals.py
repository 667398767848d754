"""How large the signals are that a cell adds up, and how many of its units are saturated."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hornn.analysis.gradients import COLUMNS
from hornn.analysis.unroll import name_part, unroll, windows
from hornn.network import SequenceModel

CENTRAL = (0.01, 0.99)  # the quantiles between which the range of a signal lies
POOLED = "pooled"  # the path in `Cell.paths` of all feedback together


@torch.no_grad()
def measure_signals(
    network: SequenceModel, ids: np.ndarray, places: np.ndarray, steps: int
) -> dict[str, Any]:
    """How saturation and the signals of each feedback path grow with the steps from the initial state.

    `saturation`: the share of saturated units after each of `steps` steps. `paths`: for each path of the cells
    (`Cell.paths`) its range and root mean square over the second half of the steps, and the root mean square at each
    step. All are over the units and over the texts before `places`.
    """
    values: dict[str, list[Tensor]] = {}
    saturation, sizes = [], []
    for before, targets in windows(ids, places, steps, COLUMNS):
        features, layers = unroll(network, before.to(network.device), network.initial_state(len(targets)))
        sizes.append(len(targets))
        saturation.append([network.saturation(step[None]) for step in features])
        for number, layer in enumerate(layers):
            told = [
                layer.cell.paths(u_t, state)
                for u_t, state in zip(layer.u.unbind(0), layer.states, strict=False)
            ]
            for name in told[0]:
                path = torch.stack([step[name] for step in told])
                values.setdefault(name_part(len(layers), number, name), []).append(path)
    paths = {
        name: describe_path(torch.cat(parts, dim=1).cpu().numpy(), steps // 2)
        for name, parts in values.items()
    }
    return {"saturation": np.average(saturation, axis=0, weights=sizes).tolist(), "paths": paths}


def describe_path(values: np.ndarray, half: int) -> dict[str, Any]:
    """The range and the root mean squares of a path's values (T, B, width)."""
    low, high = np.quantile(values[half:], CENTRAL)
    squares = np.square(values).mean(axis=(1, 2))
    return {
        "low": float(low),
        "high": float(high),
        "rms": float(np.sqrt(squares[half:].mean())),
        "rms_by_step": np.sqrt(squares).tolist(),
    }
