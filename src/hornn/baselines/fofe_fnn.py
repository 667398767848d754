"""The feed-forward network on the fixed-size ordinally-forgetting encoding (FOFE) of the history."""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation, learned_factor
from hornn.checks import require_depth, require_factor, require_positive, require_truth


class FofeState(NamedTuple):
    codes: Tensor  # (max(N - 1, 1), B, I), oldest first


class FofeFnn(Cell):
    """A network that sees the whole history as one fading sum of its words.

        z_t = alpha z_{t-1} + x_t,   z_0 = 0
        a_0 = [z_t, z_{t-1}, ..., z_{t-N+1}]
        a_l = f(W_l a_{l-1} [+ b_l]),  l = 1..L,   y_t = a_L

    x_t (B, I) is the embedding of the newest known word: the sum of projected words is the projection of the paper's
    sum of one-hot words. N = `order`, L = `num_hidden`, both >= 1; W_1 (H, N I), the other W_l (H, H), b_l (H).
    f is `activation`: sigmoid, tanh or relu. 0 < alpha < 1; with `learn_alpha` alpha = sigmoid(logit(alpha) + beta),
    where beta (1) starts at 0. So alpha starts as given, whatever factor the network applies to all initial weights.

    Source: Zhang, Jiang, Xu, Hou & Dai, "The fixed-size ordinally-forgetting encoding method for neural network
    language models" (2015): orders 1 and 2, alpha fixed. Departures: the code runs through sentence ends, as the states
    of all other cells do. Raises ValueError for a size < 1, an alpha outside (0, 1), an unknown activation.
    """

    recurrent = ()
    histories: ClassVar = {"codes": -1}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        order: int = 2,
        alpha: float = 0.7,
        learn_alpha: bool = False,
        num_hidden: int = 2,
        activation: str = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_positive(order=order)
        require_depth(num_hidden=num_hidden)
        require_truth(learn_alpha=learn_alpha)
        require_factor(alpha)
        self.order = order
        self.alpha = alpha
        self.activation = activation
        self.f = find_activation(activation)
        widths = [order * input_size, *[hidden_size] * (num_hidden - 1)]
        self.W = nn.ParameterList(self.weight(hidden_size, width) for width in widths)
        self.b = self.bias(bias, num_hidden, hidden_size)
        self.beta = self.bias(learn_alpha, 1)

    def initial_state(self, batch_size: int) -> FofeState:
        return FofeState(self.zeros(max(self.order - 1, 1), batch_size, self.input_size))

    def project_input(self, x: Tensor) -> Tensor:
        return x

    def learned_factors(self) -> Tensor | None:
        return None if self.beta is None else learned_factor(self.alpha, self.beta)

    def forgetting_factor(self) -> Tensor:
        """alpha as a tensor (1), learned or not."""
        learned = self.learned_factors()
        return self.W[0].new_full((1,), self.alpha) if learned is None else learned

    def step(self, u_t: Tensor, state: FofeState) -> tuple[Tensor, FofeState]:
        """The code a_0; what the network makes of it waits for no other step."""
        z_t = self.forgetting_factor() * state.codes[-1] + u_t
        codes = torch.cat([state.codes, z_t.unsqueeze(0)])
        return torch.cat(codes[-self.order :].flip(0).unbind(0), dim=-1), FofeState(codes[1:])

    def all_steps(self, u: Tensor, state: FofeState) -> tuple[Tensor, FofeState]:
        """z_t = alpha^t z_0 + sum_{s=1..t} alpha^(t-s) x_s: one product with the matrix of the powers of alpha."""
        T = len(u)
        steps = torch.arange(T + 1, device=u.device)
        lags = steps[1:].unsqueeze(1) - steps  # (T, T + 1), t - s for s = 0..T
        powers = torch.where(lags < 0, 0.0, self.forgetting_factor() ** lags.clamp(min=0))
        words = torch.cat([state.codes[-1:], u]).flatten(1)
        z = torch.cat([state.codes, (powers @ words).view_as(u)])
        newest = len(state.codes)  # where z_1 lies
        a = torch.cat([z[newest - lag : newest - lag + T] for lag in range(self.order)], dim=-1)
        return a, FofeState(z[T:])

    def project_output(self, y: Tensor) -> Tensor:
        """The codes (T, B, N I) -> (T, B, H): a_L."""
        for layer, W in enumerate(self.W):
            y = self.f(F.linear(y, W, None if self.b is None else self.b[layer]))
        return y
