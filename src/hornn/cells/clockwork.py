"""The clockwork recurrent network."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation
from hornn.cells.hierarchical import split_evenly


class ClockworkState(NamedTuple):
    h: Tensor  # (B, H)
    phase: Tensor  # (B, M): t mod period of each module, t the number of steps done


class Clockwork(Cell):
    """Clockwork RNN: modules that run at different clocks; a slow one speaks to itself and the faster ones.

        h^i_t = f(W_in^i x_t + sum_{j >= i} W_h^ij h^j_{t-1} [+ b^i])   where t mod period_i = 0
        h^i_t = h^i_{t-1}                                               elsewhere
        y_t = [h^1_t, ..., h^M_t]

    The H units form M = len(`periods`) modules of H / M units, the fastest first; `periods` are in steps and
    rise strictly. x_t (B, I); W_in (H, I), W_h[i] (H/M, H - i H/M) for i = 0..M-1, which reads modules i to
    M-1, b (H). t is 0 at the first step, at which every module runs. The clock is a part of the state, so a
    carried state keeps its time; it is kept modulo the period, so that no dtype overflows. f is `activation`:
    sigmoid, tanh or relu. With the one period 1 it is the RNN.

    Source: Koutnik et al., "A clockwork RNN" (2014), as Soltani's thesis (York University, 2016), section
    3.2.4, describes it. Departures: all modules are computed at every step and the idle ones discarded, so
    nothing is saved in time; biases are off unless `bias`; the first step is t = 0; f is the sigmoid of our other cells
    unless asked for, where that paper has tanh.
    Raises ValueError for a size < 1, periods that are not rising integers >= 1, a hidden_size that M does not
    divide, or an unknown activation.
    """

    counters = ("phase",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        periods: Sequence[int] = (1, 2, 4, 8),
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size)
        width = split_evenly(hidden_size, "periods", periods)
        self.periods = tuple(periods)
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(hidden_size, input_size)
        self.W_h = nn.ParameterList(
            self.weight(width, hidden_size - start) for start in range(0, hidden_size, width)
        )
        self.b = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> ClockworkState:
        return ClockworkState(
            self.zeros(batch_size, self.hidden_size), self.zeros(batch_size, len(self.periods))
        )

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def step(self, u_t: Tensor, state: ClockworkState) -> tuple[Tensor, ClockworkState]:
        feedback = torch.cat([F.linear(state.h[:, -W.size(1) :], W) for W in self.W_h], dim=-1)
        due = (state.phase < 1).repeat_interleave(self.hidden_size // len(self.periods), dim=-1)
        h_t = torch.where(due, self.f(u_t + feedback), state.h)
        phase = torch.stack(
            [(state.phase[:, i] + 1) % period for i, period in enumerate(self.periods)], dim=-1
        )
        return h_t, ClockworkState(h_t, phase)
