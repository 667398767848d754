"""Higher-order recurrent networks for language modelling: four ways to pool the last N states.

Source of all four: Soltani & Jiang, "Higher order recurrent neural networks" (2016), section 3, and
Soltani's thesis (York University, 2016), chapter 5.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation, learned_factor, push
from hornn.checks import require_factor, require_positive, require_truth


class HornnState(NamedTuple):
    history: Tensor  # (K, B, H), the newest state first: history[n-1] = h_{t-n}


class Hornn(Cell):
    """Higher-order RNN: the last N = `order` states feed back, each through its own matrix.

        h_t = f(W_in x_t + sum_{n=1..N} W_hn h_{t-n} [+ b]),   y_t = h_t

    x_t (B, I), h_t (B, H); W_in (H, I), W_h (K, H, H) with W_h[n-1] = W_hn, b (H). States before the
    first are 0. f is `activation`: sigmoid, tanh or relu. Order 1 is the RNN.

    Source: HORNN paper, equation (3). Departures: none. The paper does not name f; it counts no bias,
    so b is off unless `bias`.
    Raises ValueError for an order or size < 1 or an unknown activation.
    """

    histories: ClassVar = {"history": 0}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        order: int = 3,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_positive(order=order)
        self.order = order
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(hidden_size, input_size)
        self.W_h = self.weight(order, hidden_size, hidden_size)
        self.b = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> HornnState:
        return HornnState(self.zeros(self.order, batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def pool(self, history: Tensor) -> Tensor:
        """The feedback signal (B, H) of the last N states (K, B, H)."""
        return self.taps(history).sum(0)

    def taps(self, history: Tensor) -> Tensor:
        """W_hn h_{t-n} for every n, as it is pooled: (K, B, H)."""
        return history @ self.W_h.mT

    def paths(self, u_t: Tensor, state: HornnState) -> dict[str, Tensor]:
        return name_paths(u_t, self.taps(state.history), self.pool(state.history))

    def step(self, u_t: Tensor, state: HornnState) -> tuple[Tensor, HornnState]:
        h_t = self.f(u_t + self.pool(state.history))
        return h_t, HornnState(push(h_t, state.history))


class MaxHornn(Hornn):
    """Higher-order RNN with max pooling: each unit listens to its most responsive path.

        h_t = f(W_in x_t + max_{n=1..N} (W_hn h_{t-n}) [+ b])      (element-wise maximum)

    Arguments, shapes and errors: as in `Hornn`.

    Source: HORNN paper, equation (4). Departures: none. Where several paths tie, as all do in the zero
    initial state, the gradient goes to one of them.
    """

    def pool(self, history: Tensor) -> Tensor:
        return self.taps(history).max(0).values


class FofeHornn(Hornn):
    """Higher-order RNN with fixed-size ordinally-forgetting pooling.

        h_t = f(W_in x_t + sum_{n=1..N} alpha^n W_hn h_{t-n} [+ b])

    `alpha`, 0 < alpha < 1, is the forgetting factor, fixed before training; with `learn_alpha` alpha =
    sigmoid(logit(alpha) + beta), where beta (1) starts at 0. Other arguments, shapes and errors: as in `Hornn`;
    ValueError for an alpha outside (0, 1).

    Since alpha^n W_hn is one matrix, this computes what `Hornn` computes: alpha decides what the matrices start
    from, how fast each learns, and how strongly weight decay draws it to 0.

    Source: HORNN paper, equation (5); alpha = 0.6 is the paper's choice. Departures: `learn_alpha` is ours.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        order: int = 3,
        alpha: float = 0.6,
        learn_alpha: bool = False,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size, order, activation, bias)
        require_factor(alpha)
        self.alpha = alpha
        require_truth(learn_alpha=learn_alpha)
        self.beta = self.bias(learn_alpha, 1)

    def learned_factors(self) -> Tensor | None:
        return None if self.beta is None else learned_factor(self.alpha, self.beta)

    def powers(self) -> Tensor:
        """alpha^n for n = 1..N, (K, 1, 1)."""
        n = torch.arange(1, self.order + 1, dtype=self.W_h.dtype, device=self.W_h.device).view(-1, 1, 1)
        learned = self.learned_factors()
        return (self.W_h.new_full((), self.alpha) if learned is None else learned) ** n

    def taps(self, history: Tensor) -> Tensor:
        return self.powers() * super().taps(history)


class GatedHornn(Hornn):
    """Higher-order RNN whose paths are weighted by gates that see the input and the past state.

        r_n = sigmoid(W_1n x_t + W_2n h_{t-n} [+ b_n])
        h_t = f(W_in x_t + sum_{n=1..N} r_n * (W_hn h_{t-n}) [+ b])

    W_g1 (K, H, I) with W_g1[n-1] = W_1n, W_g2 (K, H, H) with W_g2[n-1] = W_2n, b_g (K, H). Other arguments, shapes and
    errors: as in `Hornn`. Source: HORNN paper, equations (6) and (7). Departures: none.
    """

    recurrent = ("W_h", "W_g2")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        order: int = 3,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size, order, activation, bias)
        self.W_g1 = self.weight(order, hidden_size, input_size)
        self.W_g2 = self.weight(order, hidden_size, hidden_size)
        self.b_g = self.bias(bias, order, hidden_size)

    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, (1 + K) H): the input's part of the state, then of the K gates."""
        gates = F.linear(x, self.W_g1.flatten(0, 1), None if self.b_g is None else self.b_g.flatten())
        return torch.cat([super().project_input(x), gates], dim=-1)

    def gated_taps(self, u_t: Tensor, history: Tensor) -> tuple[Tensor, Tensor]:
        """The input's part of the state (B, H) and r_n * W_hn h_{t-n} for every n, (K, B, H)."""
        u_h, u_g = u_t.split([self.hidden_size, self.order * self.hidden_size], dim=-1)
        u_g = u_g.unflatten(-1, (self.order, self.hidden_size)).movedim(-2, 0)  # (K, B, H)
        r = torch.sigmoid(u_g + history @ self.W_g2.mT)
        return u_h, r * self.taps(history)

    def step(self, u_t: Tensor, state: HornnState) -> tuple[Tensor, HornnState]:
        u_h, taps = self.gated_taps(u_t, state.history)
        h_t = self.f(u_h + taps.sum(0))
        return h_t, HornnState(push(h_t, state.history))

    def paths(self, u_t: Tensor, state: HornnState) -> dict[str, Tensor]:
        u_h, taps = self.gated_taps(u_t, state.history)
        return name_paths(u_h, taps, taps.sum(0))


def name_paths(u_h: Tensor, taps: Tensor, pooled: Tensor) -> dict[str, Tensor]:
    """`Cell.paths` of the input's part, of the taps (K, B, H) and of what they are pooled to."""
    return {"input": u_h, **{f"h_{{t-{n}}}": tap for n, tap in enumerate(taps, start=1)}, "pooled": pooled}
