"""The feed-forward neural language model."""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation, saturation
from hornn.checks import require_truth, require_whole


class NnlmState(NamedTuple):
    words: Tensor  # (n - 2, B, I), oldest first


class Nnlm(Cell):
    """A network that sees the last n - 1 words and no more.

        z_t = [x_t, x_{t-1}, ..., x_{t-n+2}]
        h_t = f(H z_t [+ d]),   y_t = h_t, or [h_t, z_t] with `direct`

    x_t (B, I) is the embedding C(w) of the newest known word, so that y_t predicts the next one from an n-gram's
    context, n = `order` >= 2. H (H, (n-1) I), d (H). f is `activation`: sigmoid, tanh or relu. With `direct` the
    output layer sees the words themselves too (the paper's W). Words before the text have x = 0.

    Source: Bengio, Ducharme, Vincent & Jauvin, "A neural probabilistic language model" (2003), section 2:
    y = b + W x + U tanh(d + H x); U, W and b are the output layer's. Departures: none; the paper's weight decay is the
    optimizer's. Raises ValueError for a size < 1, an order < 2, an unknown activation.
    """

    recurrent = ()
    histories: ClassVar = {"words": -1}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        order: int = 5,
        activation: str = "tanh",
        direct: bool = False,
        bias: bool = True,
    ) -> None:
        require_whole(2, order=order)
        require_truth(direct=direct)
        super().__init__(input_size, hidden_size)
        width = (order - 1) * input_size
        self.output_size = hidden_size + width if direct else hidden_size
        self.order = order
        self.direct = direct
        self.activation = activation
        self.f = find_activation(activation)
        self.H = self.weight(hidden_size, width)
        self.d = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> NnlmState:
        return NnlmState(self.zeros(self.order - 2, batch_size, self.input_size))

    def project_input(self, x: Tensor) -> Tensor:
        return x

    def step(self, u_t: Tensor, state: NnlmState) -> tuple[Tensor, NnlmState]:
        """The window z_t; what the network makes of it waits for no other step."""
        words = torch.cat([state.words, u_t.unsqueeze(0)])
        return torch.cat(words.flip(0).unbind(0), dim=-1), NnlmState(words[1:])

    def all_steps(self, u: Tensor, state: NnlmState) -> tuple[Tensor, NnlmState]:
        words = torch.cat([state.words, u])
        T = len(u)
        z = torch.cat([words[start : start + T] for start in reversed(range(self.order - 1))], dim=-1)
        return z, NnlmState(words[T:])

    def project_output(self, y: Tensor) -> Tensor:
        """The windows (T, B, (n-1) I) -> (T, B, output_size): h_t, or [h_t, z_t]."""
        h = self.f(F.linear(y, self.H, self.d))
        return torch.cat([h, y], dim=-1) if self.direct else h

    def saturation(self, y: Tensor) -> float:
        """The saturation of the hidden units; the window is linear."""
        return saturation(y[..., : self.hidden_size], self.activation)
