"""The gated-feedback recurrent network."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation
from hornn.cells.deep import StackedRnnState
from hornn.checks import require_depth


class GatedFeedbackRnn(Cell):
    """Gated-feedback RNN: a stack in which every layer hears all layers' last states, each through a gate.

        g^{i->j} = sigmoid(w_g^{i->j} . h^{j-1}_t + u_g^{i->j} . h*_{t-1})               (one number)
        h^j_t = f(W^j h^{j-1}_t + sum_{i=1..L} g^{i->j} U^{i->j} h^i_{t-1} [+ b^j]),   j = 1..L
        h^0_t = x_t,   h*_{t-1} = [h^1_{t-1}, ..., h^L_{t-1}],   y_t = h^L_t

    L = `depth`; all layers have H = `hidden_size` units. x_t (B, I); per layer j, of input width I_j (I, then
    H): W_in[j-1] (H, I_j) = W^j and W_g1[j-1] (L, I_j), whose row i-1 is w_g^{i->j}; W_h (L, L, H, H) with
    W_h[j-1, i-1] = U^{i->j}, W_g2 (L, L, L H) with W_g2[j-1, i-1] = u_g^{i->j}, b (L, H). f is `activation`:
    sigmoid, tanh or relu.

    Source: Chung et al., "Gated feedback recurrent neural networks" (2015), section 3.1 with tanh units, as
    recalled, not checked against its text; the
    HORNN paper, section 2, and Soltani's thesis, section 3.2.4, name it. Departures: the paper's LSTM and GRU
    units are left out; only the top layer is the output; biases are off unless `bias`; f is the sigmoid of our other
    cells unless asked for, where that paper has tanh.
    Raises ValueError for a depth or size < 1 or an unknown activation.
    """

    recurrent = ("W_h", "W_g2")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        depth: int = 3,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_depth(depth=depth)
        self.depth = depth
        self.activation = activation
        self.f = find_activation(activation)
        widths = [input_size, *[hidden_size] * (depth - 1)]
        self.W_in = nn.ParameterList(self.weight(hidden_size, width) for width in widths)
        self.W_g1 = nn.ParameterList(self.weight(depth, width) for width in widths)
        self.W_h = self.weight(depth, depth, hidden_size, hidden_size)
        self.W_g2 = self.weight(depth, depth, depth * hidden_size)
        self.b = self.bias(bias, depth, hidden_size)

    def initial_state(self, batch_size: int) -> StackedRnnState:
        return StackedRnnState(self.zeros(self.depth, batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, H + L): the input's part of the lowest layer, then of its gates."""
        return self.project_below(0, x)

    def project_below(self, layer: int, below: Tensor) -> Tensor:
        """What a layer and its gates receive from the layer below: (..., I_j) -> (..., H + L)."""
        return F.linear(below, torch.cat([self.W_in[layer], self.W_g1[layer]]))

    def step(self, u_t: Tensor, state: StackedRnnState) -> tuple[Tensor, StackedRnnState]:
        past = state.h.movedim(0, 1).flatten(1)  # h*, (B, L H)
        gates = F.linear(past, self.W_g2.flatten(0, 1)).unflatten(-1, (self.depth, self.depth))  # (B, j, i)
        taps = state.h @ self.W_h.mT  # U^{i->j} h^i_{t-1}: (j, i, B, H)
        h: list[Tensor] = []
        for layer in range(self.depth):
            u, u_g = (self.project_below(layer, h[-1]) if layer else u_t).split(
                [self.hidden_size, self.depth], dim=-1
            )
            g = torch.sigmoid(u_g + gates[:, layer])
            a = u + torch.einsum("bi,ibh->bh", g, taps[layer])
            h.append(self.f(a if self.b is None else a + self.b[layer]))
        return h[-1], StackedRnnState(torch.stack(h))
