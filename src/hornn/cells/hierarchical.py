"""The hierarchical recurrent network with delayed connections."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation, push
from hornn.cells.hornn import HornnState
from hornn.checks import require_positive


class Hierarchical(Cell):
    """Levels of recurrent units; the higher the level, the further back its feedback reaches.

        h^1_t = f(W_in x_t + W_h^1 h^1_{t - d_1} [+ b^1])
        h^l_t = f(W_up^l h^{l-1}_t + W_h^l h^l_{t - d_l} [+ b^l]),   l = 2..L
        y_t = [h^1_t, ..., h^L_t]

    `delays` d_1 < ... < d_L are in steps; the H units form L levels of H / L units. x_t (B, I); W_in
    (H/L, I), W_up (L-1, H/L, H/L), none for one level, W_h (L, H/L, H/L), b (L, H/L). States before the first are 0.
    A gradient crosses n steps of time in n / d_l steps of level l. f is `activation`: sigmoid, tanh or relu. With the
    one delay 1 it is the RNN.

    Source: El Hihi & Bengio, "Hierarchical recurrent neural networks for long-term dependencies" (1996), of
    which the HORNN paper, section 2, and Soltani's thesis, section 3.2.1, give the idea alone: time-delayed
    connections on several time scales. Departures: the equations are this project's reading of that idea;
    the number of levels and the delays are free; the delayed connections carry weights.
    Raises ValueError for a size < 1, delays that are not rising integers >= 1, a hidden_size that L does not
    divide, or an unknown activation.
    """

    histories: ClassVar = {"history": 0}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        delays: Sequence[int] = (1, 2, 4, 8),
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size)
        width = split_evenly(hidden_size, "delays", delays)
        self.delays = tuple(delays)
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(width, input_size)
        self.W_up = self.weight(len(delays) - 1, width, width) if len(delays) > 1 else None
        self.W_h = self.weight(len(delays), width, width)
        self.b = self.bias(bias, len(delays), width)

    def initial_state(self, batch_size: int) -> HornnState:
        return HornnState(self.zeros(self.delays[-1], batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in)

    def step(self, u_t: Tensor, state: HornnState) -> tuple[Tensor, HornnState]:
        levels = state.history.unflatten(-1, (len(self.delays), -1))  # (K, B, L, H/L)
        delayed = torch.stack([levels[d - 1, :, level] for level, d in enumerate(self.delays)])
        feedback = delayed @ self.W_h.mT
        if self.b is not None:
            feedback = feedback + self.b.unsqueeze(1)
        h = [self.f(u_t + feedback[0])]
        for W, signal in zip(() if self.W_up is None else self.W_up, feedback[1:], strict=True):
            h.append(self.f(F.linear(h[-1], W) + signal))
        h_t = torch.cat(h, dim=-1)
        return h_t, HornnState(push(h_t, state.history))


def split_evenly(hidden_size: int, name: str, scales: Sequence[int]) -> int:
    """Units for each of the time scales called `name`.

    Raises ValueError unless `scales` are strictly rising integers >= 1 whose number divides `hidden_size`.
    """
    whole = isinstance(scales, Sequence) and all(type(scale) is int and scale >= 1 for scale in scales)
    if not scales or not whole or not all(fast < slow for fast, slow in pairwise(scales)):
        raise ValueError(f"{name} must be strictly rising integers >= 1, in steps, got {scales!r}")
    require_positive(**{name: scales[-1]})
    if hidden_size % len(scales):
        raise ValueError(
            f"hidden_size must be a multiple of {len(scales)}, the number of {name}, got {hidden_size}"
        )
    return hidden_size // len(scales)
