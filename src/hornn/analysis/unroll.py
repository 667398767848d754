"""A network run step by step, with every state kept."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hornn.cells.base import Cell, State
from hornn.network import NetworkState, SequenceModel


class Layer(NamedTuple):
    """What one layer did: `u` (T, B, G) is its projected input, `states` its T + 1 states, the given one first.

    A state stands for what one step hands to the next: its gradient is of all that comes through it, so that h and c of
    an LSTM are told apart though h is made of c.
    """

    cell: Cell
    u: Tensor
    states: list[State]


def unroll(network: SequenceModel, inputs: Tensor, state: NetworkState) -> tuple[Tensor, list[Layer]]:
    """Ids (T, B) and the state before them -> features (T, B, H) and what each layer did, by the cells' own steps."""
    x, layers = network.embedding(inputs), []
    for cell, before in zip(network.cells, state, strict=True):
        assert isinstance(cell, Cell)
        u, states, outputs = cell.project_input(x), [before], []
        for u_t in u.unbind(0):
            y_t, after = cell.step(u_t, states[-1])
            outputs.append(y_t)
            states.append(type(after)(*map(apart, after)))
        x = cell.project_output(torch.stack(outputs))
        layers.append(Layer(cell, u, states))
    return x, layers


def apart(tensor: Tensor) -> Tensor:
    """The tensor of a state as one of its own, which has a gradient also where a step made it of its input alone."""
    if tensor.requires_grad or not torch.is_grad_enabled():
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_()


def find_places(length: int, before: int, number: int) -> np.ndarray:
    """At most `number` places spread evenly over a text of `length` tokens, each with `before` tokens in front of it.

    Raises ValueError where the text is too short.
    """
    if length <= before:
        raise ValueError(f"the text has {length:,} tokens, and lags= needs more than {before:,}: lower it")
    return np.unique(np.linspace(before, length - 1, number).astype(np.int64))


def windows(
    ids: np.ndarray, places: np.ndarray, length: int, columns: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """The `length` tokens before each place (length, B) and the token there (B), `columns` places at a time."""
    for some in np.array_split(places, -(-len(places) // columns)):
        before = ids[some[None] + np.arange(-length, 0)[:, None]]
        yield torch.from_numpy(before.astype(np.int64)), torch.from_numpy(ids[some].astype(np.int64))


def name_part(layers: int, layer: int, name: str) -> str:
    """How a part of a layer is called: by its name alone where the network has one layer."""
    return name if layers == 1 else f"layer {layer + 1}: {name}"
