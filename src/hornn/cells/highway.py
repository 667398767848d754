"""The recurrent network whose transition is a highway network."""

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation
from hornn.cells.elman import RnnState
from hornn.checks import is_number, require_depth, require_range


class HighwayRnn(Cell):
    """RNN whose transition is a highway network: gates choose between a new state and the old one.

        s^0 = h_{t-1}
        c^l = f(W^l s^{l-1} [+ b_c^l] + (W_in^c x_t if l = 1))
        g^l = sigmoid(G^l s^{l-1} [+ b_g^l] + gate_bias + (W_in^g x_t if l = 1))
        s^l = g^l * c^l + (1 - g^l) * s^{l-1},   l = 1..L
        h_t = s^L,   y_t = h_t

    L = `depth`. Candidate and gate are stacked: W_in (2H, I), W_h (L, 2H, H) with W_h[l-1] = [W^l; G^l], b
    (L, 2H). `gate_bias` is a constant that is not trained; where it is negative the state is mostly carried
    over at first. f is `activation`: sigmoid, tanh or relu. With closed gates the state stays, with open ones
    depth 1 is the RNN.

    Source: Srivastava et al., "Training very deep networks" (2015), the highway networks that the HORNN
    paper, section 2, names; our layers stand between h_{t-1} and h_t. The equations are as recalled, not checked
    against that text. Departures: the layers are a recurrence's; the paper's negative initial gate bias is a constant,
    so that it is there without trained biases, which are off unless `bias`.
    Raises ValueError for a depth or size < 1, a gate_bias that is not a number, or an unknown activation.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        depth: int = 1,
        gate_bias: float = -1.0,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_depth(depth=depth)
        require_range("gate_bias", gate_bias, "a number, such as -1", is_number(gate_bias))
        self.gate_bias = gate_bias
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(2 * hidden_size, input_size)
        self.W_h = self.weight(depth, 2 * hidden_size, hidden_size)
        self.b = self.bias(bias, depth, 2 * hidden_size)

    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        s = state.h
        for layer, W in enumerate(self.W_h):
            a = F.linear(s, W, None if self.b is None else self.b[layer])
            c, g = (a if layer else a + u_t).chunk(2, dim=-1)
            s = torch.lerp(s, self.f(c), torch.sigmoid(g + self.gate_bias))
        return s, RnnState(s)
