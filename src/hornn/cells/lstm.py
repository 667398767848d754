"""Long short-term memory, plain and with a projected state."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell
from hornn.checks import require_positive


class LstmState(NamedTuple):
    h: Tensor  # (B, H)
    c: Tensor  # (B, H)


class Lstm(Cell):
    """Long short-term memory with input, forget and output gates and no peepholes.

        i_t = sigmoid(W_in^i x_t + W_h^i h_{t-1} [+ b^i])
        f_t = sigmoid(W_in^f x_t + W_h^f h_{t-1} [+ b^f])
        g_t = tanh(W_in^g x_t + W_h^g h_{t-1} [+ b^g])
        o_t = sigmoid(W_in^o x_t + W_h^o h_{t-1} [+ b^o])
        c_t = f_t * c_{t-1} + i_t * g_t
        h_t = o_t * tanh(c_t),   y_t = h_t

    The four blocks are stacked as i, f, g, o: W_in (4H, I), W_h (4H, H), b (4H).

    Source: Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000; the HORNN paper
    compares with it at 9.28 M weights, which this form without biases has at its sizes.
    Departures: none from torch.nn.LSTM but that its two biases, always summed, are one bias.
    Raises ValueError for a size < 1.
    """

    activation = "tanh"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = False) -> None:
        super().__init__(input_size, hidden_size)
        self.W_in = self.weight(4 * hidden_size, input_size)
        self.W_h = self.weight(4 * hidden_size, hidden_size)
        self.b = self.bias(bias, 4 * hidden_size)

    def initial_state(self, batch_size: int) -> LstmState:
        return LstmState(self.zeros(batch_size, self.hidden_size), self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def step(self, u_t: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        i, f, g, o = (u_t + F.linear(state.h, self.W_h)).chunk(4, dim=-1)
        c_t = torch.sigmoid(f) * state.c + torch.sigmoid(i) * torch.tanh(g)
        h_t = torch.sigmoid(o) * torch.tanh(c_t)
        return h_t, LstmState(h_t, c_t)

    def paths(self, u_t: Tensor, state: LstmState) -> dict[str, Tensor]:
        """The feedback of each gate, and of the cell's candidate g."""
        blocks = F.linear(state.h, self.W_h).chunk(4, dim=-1)
        return {f"W_h^{gate} h_{{t-1}}": v for gate, v in zip("ifgo", blocks, strict=True)}


class LstmpState(NamedTuple):
    r: Tensor  # (B, projection_size)
    c: Tensor  # (B, H)


class Lstmp(Cell):
    """Long short-term memory whose output is projected to fewer units before it is fed back.

        i_t = sigmoid(W_in^i x_t + W_h^i r_{t-1} [+ b^i])
        f_t = sigmoid(W_in^f x_t + W_h^f r_{t-1} [+ b^f])
        g_t = tanh(W_in^g x_t + W_h^g r_{t-1} [+ b^g])
        o_t = sigmoid(W_in^o x_t + W_h^o r_{t-1} [+ b^o])
        c_t = f_t * c_{t-1} + i_t * g_t
        r_t = P (o_t * tanh(c_t)),   y_t = r_t

    x_t (B, I), c_t (B, H), r_t (B, `projection_size`); None is half of H, rounded up. The four blocks are
    stacked as i, f, g, o: W_in (4H, I), W_h (4H, projection_size), b (4H); P (projection_size, H).

    Source: Sak, Senior & Beaufays 2014; the baseline of the acoustic HORNN poster (Zhang & Woodland 2018).
    Departures: no peepholes, as in `Lstm`.
    Raises ValueError for a size < 1 or a projection wider than the state.
    """

    activation = "linear"
    recurrent = ("W_h", "P")

    def __init__(
        self, input_size: int, hidden_size: int, projection_size: int | None = None, bias: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size, find_projection_size(projection_size, hidden_size))
        self.W_in = self.weight(4 * hidden_size, input_size)
        self.W_h = self.weight(4 * hidden_size, self.output_size)
        self.P = self.weight(self.output_size, hidden_size)
        self.b = self.bias(bias, 4 * hidden_size)

    def initial_state(self, batch_size: int) -> LstmpState:
        return LstmpState(self.zeros(batch_size, self.output_size), self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def step(self, u_t: Tensor, state: LstmpState) -> tuple[Tensor, LstmpState]:
        i, f, g, o = (u_t + F.linear(state.r, self.W_h)).chunk(4, dim=-1)
        c_t = torch.sigmoid(f) * state.c + torch.sigmoid(i) * torch.tanh(g)
        r_t = F.linear(torch.sigmoid(o) * torch.tanh(c_t), self.P)
        return r_t, LstmpState(r_t, c_t)


def find_projection_size(projection_size: int | None, hidden_size: int) -> int:
    """The width of a projected state: None is half of hidden_size, rounded up.

    Raises ValueError for a size < 1 or a projection wider than the state.
    """
    require_positive(hidden_size=hidden_size)
    if projection_size is None:
        return (hidden_size + 1) // 2
    require_positive(projection_size=projection_size)
    if projection_size > hidden_size:
        raise ValueError(
            f"projection_size must not exceed hidden_size = {hidden_size}, got {projection_size}"
        )
    return projection_size
