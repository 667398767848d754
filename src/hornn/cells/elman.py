"""The Elman recurrent network."""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation


class RnnState(NamedTuple):
    h: Tensor  # (B, H)


class Rnn(Cell):
    """The recurrent network that the other cells are compared with.

        h_t = f(W_in x_t + W_h h_{t-1} [+ b]),   y_t = h_t

    x_t (B, I), h_t (B, H). f is `activation`: sigmoid, tanh or relu.

    Source: Soltani & Jiang, "Higher order recurrent neural networks", equation (1).
    Departures: none. The paper does not name f; it counts no bias, so b is off unless `bias`.
    Raises ValueError for a size < 1 or an unknown activation.
    """

    def __init__(
        self, input_size: int, hidden_size: int, activation: str = "sigmoid", bias: bool = False
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(hidden_size, input_size)
        self.W_h = self.weight(hidden_size, hidden_size)
        self.b = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        h_t = self.f(u_t + F.linear(state.h, self.W_h))
        return h_t, RnnState(h_t)

    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        return {"input": u_t, "pooled": F.linear(state.h, self.W_h)}
