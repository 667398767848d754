"""Gated recurrent unit."""

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell
from hornn.cells.elman import RnnState
from hornn.checks import require_truth


class Gru(Cell):
    """Gated recurrent unit, whose reset gate follows the recurrent product or precedes it.

        r_t = sigmoid(W_in^r x_t + W_h^r h_{t-1} [+ b^r])
        z_t = sigmoid(W_in^z x_t + W_h^z h_{t-1} [+ b^z])
        n_t = tanh(W_in^n x_t [+ b^n] + r_t * (W_h^n h_{t-1} [+ b_n]))    where `reset_after`
        n_t = tanh(W_in^n x_t [+ b^n] + W_h^n (r_t * h_{t-1}))            else
        h_t = (1 - z_t) * n_t + z_t * h_{t-1},   y_t = h_t

    The three blocks are stacked as r, z, n: W_in (3H, I), W_h (3H, H), b (3H); b_n (H), which only `reset_after` has.

    Source: Cho et al. 2014 and Soltani's thesis, section 3.2.3, both without `reset_after`.
    Departures: with `reset_after`, the default, the reset gate multiplies the product, as in torch.nn.GRU, so that a
    step has one matrix product. The roles of z_t and 1 - z_t are the thesis' and torch's. Raises ValueError for a
    size < 1, and for a `reset_after` that is neither true nor false.
    """

    activation = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = False, reset_after: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_truth(reset_after=reset_after)
        self.reset_after = reset_after
        self.W_in = self.weight(3 * hidden_size, input_size)
        self.W_h = self.weight(3 * hidden_size, hidden_size)
        self.b = self.bias(bias, 3 * hidden_size)
        self.b_n = self.bias(bias and reset_after, hidden_size)

    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        u_r, u_z, u_n = u_t.chunk(3, dim=-1)
        if self.reset_after:
            v_r, v_z, v_n = F.linear(state.h, self.W_h).chunk(3, dim=-1)
            if self.b_n is not None:
                v_n = v_n + self.b_n
            r_t = torch.sigmoid(u_r + v_r)
            n_t = torch.tanh(u_n + r_t * v_n)
        else:
            W_gates, W_n = self.W_h.split([2 * self.hidden_size, self.hidden_size])
            v_r, v_z = F.linear(state.h, W_gates).chunk(2, dim=-1)
            r_t = torch.sigmoid(u_r + v_r)
            n_t = torch.tanh(u_n + F.linear(r_t * state.h, W_n))
        z_t = torch.sigmoid(u_z + v_z)
        h_t = torch.lerp(n_t, state.h, z_t)
        return h_t, RnnState(h_t)

    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        """The feedback of each gate, and of the candidate n, where its gate is open."""
        blocks = F.linear(state.h, self.W_h).chunk(3, dim=-1)
        return {f"W_h^{gate} h_{{t-1}}": v for gate, v in zip("rzn", blocks, strict=True)}
