"""How much of the gradient of a loss reaches the states of steps before."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hornn.analysis.unroll import name_part, unroll, windows
from hornn.network import NetworkState, SequenceModel, detach_all

COLUMNS = 50  # windows that are read side by side
LEFT = 0.01  # a gradient has vanished where less than this share of it is left
ALL = "all"  # the name of all parts of the state together


def has_states(network: SequenceModel) -> bool:
    """Whether a step hands anything on; a network that reads the last word alone (nnlm of order 2) hands on nothing."""
    layers = zip(network.cells, network.initial_state(1), strict=True)
    return any(cell.newest(state) for cell, state in layers)  # type: ignore[operator]


def measure_gradients(
    network: SequenceModel, ids: np.ndarray, places: np.ndarray, lags: int
) -> dict[str, dict[str, list[float]]]:
    """||d loss_t / d h_{t-k}|| for k = 1..lags: its statistics over the tokens t of `places`, by part of the state.

        loss_t = -ln P(w_t | w_{t-2 lags} .. w_{t-1})

    h_{t-k} is what step t - k made of the state that it hands on (`Cell.newest`); the derivative is the total one,
    along every path from there. The state of step t - lags comes from reading `lags` tokens from the initial state, so
    each place needs 2 `lags` tokens before it. Norms are Euclidean, each of one token; `all` is the norm of all parts
    together, and the only one where the state has one part. No bound of the training (`network.state_grad_norm`)
    applies.
    """
    norms: dict[str, list[Tensor]] = {}
    for before, targets in windows(ids, places, 2 * lags, COLUMNS):
        with torch.no_grad():
            _, state = network(before[:lags].to(network.device), network.initial_state(len(targets)))
        for name, part in norms_by_lag(network, before[lags:], targets, state).items():
            norms.setdefault(name, []).append(part)
    by_part = {name: torch.cat(parts, dim=1).cpu().numpy() for name, parts in norms.items()}
    return {name: describe(part) for name, part in by_part.items()}


def norms_by_lag(
    network: SequenceModel, inputs: Tensor, targets: Tensor, state: NetworkState
) -> dict[str, Tensor]:
    """The norms (T, B) of the gradient of the loss behind T inputs (T, B), by the lag of the step: 1 first."""
    state = tuple(type(layer)(*(tensor.requires_grad_() for tensor in layer)) for layer in detach_all(state))
    features, layers = unroll(network, inputs.to(network.device), state)
    loss = network.head.nll(features[-1:], targets[None].to(network.device)).sum()
    tensors = [tensor for layer in layers for step in layer.states[:-1] for tensor in step]
    gradients = iter(torch.autograd.grad(loss, tensors, materialize_grads=True))
    squares: dict[str, list[Tensor]] = {}
    for number, layer in enumerate(layers):
        for step in layer.states[:-1]:
            of_step = type(step)(*(next(gradients) for _ in step))
            for name, part in layer.cell.newest(of_step).items():
                own = part.movedim(-2, 0).flatten(1).square().sum(1)
                squares.setdefault(name_part(len(layers), number, name), []).append(own)
    by_lag = {name: torch.stack(steps[::-1]) for name, steps in squares.items()}
    parts = by_lag if len(by_lag) > 1 else {}
    return {
        ALL: torch.stack([*by_lag.values()]).sum(0).sqrt(),
        **{name: part.sqrt() for name, part in parts.items()},
    }


def describe(norms: np.ndarray) -> dict[str, list[float]]:
    """Mean and quartiles over the tokens, of norms (lags, N)."""
    quartiles = np.quantile(norms, (0.25, 0.5, 0.75), axis=1)
    named = dict(zip(("q25", "q50", "q75"), quartiles.tolist(), strict=True))
    return {"mean": norms.mean(axis=1).tolist(), **named}


def reach(gradients: dict[str, Any]) -> int:
    """The lag up to which the median norm is 1 % of its value at lag 1 or more; 0 where that is 0."""
    median = gradients[ALL]["q50"]
    if not median[0]:
        return 0
    return next((k for k, norm in enumerate(median) if not norm >= LEFT * median[0]), len(median))
