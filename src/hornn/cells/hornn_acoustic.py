"""Higher-order recurrent networks for acoustic modelling: one tap beside the RNN's, for ReLU and sigmoid.

Source of all: Zhang & Woodland, "High order recurrent neural networks for acoustic modelling" (ICASSP 2018),
the poster, whose equations have a bias; it is on unless `bias` is false. The poster has 500 units in figure 2, and 1000
with projections to 500 in table 2; the sizes that give table 1's numbers of parameters are deduced.
"""

from typing import ClassVar, NamedTuple

from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, find_activation, push
from hornn.cells.hornn import HornnState
from hornn.cells.lstm import find_projection_size
from hornn.checks import require_positive


class ReluHornn(Cell):
    """Higher-order RNN in the form for ReLU: the last state and the one n steps back feed back.

        h_t = f(W_in x_t + U_1 h_{t-1} + U_n h_{t-n} [+ b]),   y_t = h_t

    x_t (B, I), h_t (B, H); W_in (H, I), U_1 and U_n (H, H), b (H). The state holds the last K = n states; states before
    the first are 0. f is `activation`: sigmoid, tanh or relu.

    Source: poster, "ReLU"; n = 4 is its choice. Departures: none.
    Raises ValueError for an n or size < 1 or an unknown activation.
    """

    recurrent = ("U_",)
    histories: ClassVar = {"history": 0}

    def __init__(
        self, input_size: int, hidden_size: int, n: int = 4, activation: str = "relu", bias: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_positive(n=n)
        self.n = n
        self.order = n
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(hidden_size, input_size)
        self.U_1 = self.weight(hidden_size, hidden_size)
        self.U_n = self.weight(hidden_size, hidden_size)
        self.b = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> HornnState:
        return HornnState(self.zeros(self.order, batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def feedback(self, history: Tensor) -> Tensor:
        """What the past states (K, B, H) add to the pre-activation: (B, H)."""
        return F.linear(history[0], self.U_1) + F.linear(history[self.n - 1], self.U_n)

    def step(self, u_t: Tensor, state: HornnState) -> tuple[Tensor, HornnState]:
        h_t = self.f(u_t + self.feedback(state.history))
        return h_t, HornnState(push(h_t, state.history))

    def paths(self, u_t: Tensor, state: HornnState) -> dict[str, Tensor]:
        history = state.history
        taps = {"U_1 h_{t-1}": F.linear(history[0], self.U_1)}
        taps[f"U_n h_{{t-{self.n}}}"] = F.linear(history[self.n - 1], self.U_n)
        return {"input": u_t, **taps, "pooled": self.feedback(history)}


class SigmoidHornn(ReluHornn):
    """Higher-order RNN in the form for sigmoid: a past state is added without weights, too.

        h_t = f(W_in x_t + U_1 h_{t-1} + U_n h_{t-n} + h_{t-m} [+ b]),   y_t = h_t

    The state holds the last K = max(m, n) states. Other arguments, shapes and errors: as in `ReluHornn`; ValueError for
    an m < 1.

    Source: poster, "Sigmoid"; m = 1 and n = 2 are its choice. Departures: none.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        n: int = 2,
        m: int = 1,
        activation: str = "sigmoid",
        bias: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size, n, activation, bias)
        require_positive(m=m)
        self.m = m
        self.order = max(m, n)

    def feedback(self, history: Tensor) -> Tensor:
        return super().feedback(history) + history[self.m - 1]

    def paths(self, u_t: Tensor, state: HornnState) -> dict[str, Tensor]:
        return {**super().paths(u_t, state), f"h_{{t-{self.m}}}": state.history[self.m - 1]}


class ReluHornnpState(NamedTuple):
    projected: Tensor  # (n, B, projection_size), the newest first: projected[k-1] = P h_{t-k}


class ReluHornnp(Cell):
    """Projected higher-order RNN in the form for ReLU: both taps share one linear projection P.

        h_t = f(W_in x_t + U_p1 P h_{t-1} + U_pn P h_{t-n} [+ b]),   y_t = P h_t

    x_t (B, I), h_t (B, H), P h_t (B, `projection_size`); None is half of H, rounded up. W_in (H, I), U_p1 and
    U_pn (H, projection_size), P (projection_size, H), b (H). Each state is projected once, when it is made. f is
    `activation`: sigmoid, tanh or relu.

    Source: poster, HORNNP, "ReLU"; n = 4 is its choice. Departures: none known. The poster does not say
    what the next layer sees; that it is P h_t is deduced from the number of parameters with two layers.
    Raises ValueError for an n or size < 1, a projection wider than the state, or an unknown activation.
    """

    activation = "linear"  # of y_t
    recurrent = ("U_", "P")
    histories: ClassVar = {"projected": 0, "history": 0}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        projection_size: int | None = None,
        n: int = 4,
        activation: str = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size, find_projection_size(projection_size, hidden_size))
        require_positive(n=n)
        self.n = n
        self.f = find_activation(activation)
        self.W_in = self.weight(hidden_size, input_size)
        self.U_p1 = self.weight(hidden_size, self.output_size)
        self.U_pn = self.weight(hidden_size, self.output_size)
        self.P = self.weight(self.output_size, hidden_size)
        self.b = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> ReluHornnpState:
        return ReluHornnpState(self.zeros(self.n, batch_size, self.output_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def feedback(self, projected: Tensor) -> Tensor:
        """What the past states, projected (n, B, projection_size), add to the pre-activation: (B, H)."""
        return F.linear(projected[0], self.U_p1) + F.linear(projected[self.n - 1], self.U_pn)

    def step(self, u_t: Tensor, state: ReluHornnpState) -> tuple[Tensor, ReluHornnpState]:
        h_t = self.f(u_t + self.feedback(state.projected))
        y_t = F.linear(h_t, self.P)
        return y_t, ReluHornnpState(push(y_t, state.projected))


class SigmoidHornnpState(NamedTuple):
    projected: Tensor  # (n, B, projection_size), the newest first: projected[k-1] = P h_{t-k}
    history: Tensor  # (m, B, H), the newest first: history[k-1] = h_{t-k}


class SigmoidHornnp(ReluHornnp):
    """Projected higher-order RNN in the form for sigmoid: a past state is added without weights, too.

        h_t = f(W_in x_t + U_p1 P h_{t-1} + U_pn P h_{t-n} + h_{t-m} [+ b]),   y_t = P h_t

    Other arguments, shapes and errors: as in `ReluHornnp`; ValueError for an m < 1.

    Source: poster, HORNNP, "Sigmoid"; m = 1 and n = 2 are its choice. Departures: as `ReluHornnp`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        projection_size: int | None = None,
        n: int = 2,
        m: int = 1,
        activation: str = "sigmoid",
        bias: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size, projection_size, n, activation, bias)
        require_positive(m=m)
        self.m = m

    def initial_state(self, batch_size: int) -> SigmoidHornnpState:  # type: ignore[override]
        history = self.zeros(self.m, batch_size, self.hidden_size)
        return SigmoidHornnpState(super().initial_state(batch_size).projected, history)

    def step(  # type: ignore[override]
        self, u_t: Tensor, state: SigmoidHornnpState
    ) -> tuple[Tensor, SigmoidHornnpState]:
        h_t = self.f(u_t + self.feedback(state.projected) + state.history[self.m - 1])
        y_t = F.linear(h_t, self.P)
        return y_t, SigmoidHornnpState(push(y_t, state.projected), push(h_t, state.history))


class ResRnn(Cell):
    """Residual RNN: a step of two layers, past which the state of m steps back is led without weights.

        h_t = f(U_d2 f(W_in x_t + U_d1 h_{t-1} [+ b]) + h_{t-m}),   y_t = h_t

    x_t (B, I), h_t (B, H); W_in (H, I), U_d1 and U_d2 (H, H), b (H). The state holds the last K = m states; states
    before the first are 0. f is `activation`: sigmoid, tanh or relu.

    Source: poster, the baseline ResRNN. Departures: none; the poster names neither f nor m: sigmoid and 1 come from the
    sigmoid HORNN that it compares with.
    Raises ValueError for an m or size < 1 or an unknown activation.
    """

    recurrent = ("U_",)
    histories: ClassVar = {"history": 0}

    def __init__(
        self, input_size: int, hidden_size: int, m: int = 1, activation: str = "sigmoid", bias: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size)
        require_positive(m=m)
        self.m = m
        self.activation = activation
        self.f = find_activation(activation)
        self.W_in = self.weight(hidden_size, input_size)
        self.U_d1 = self.weight(hidden_size, hidden_size)
        self.U_d2 = self.weight(hidden_size, hidden_size)
        self.b = self.bias(bias, hidden_size)

    def initial_state(self, batch_size: int) -> HornnState:
        return HornnState(self.zeros(self.m, batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in, self.b)

    def step(self, u_t: Tensor, state: HornnState) -> tuple[Tensor, HornnState]:
        inner = self.f(u_t + F.linear(state.history[0], self.U_d1))
        h_t = self.f(F.linear(inner, self.U_d2) + state.history[self.m - 1])
        return h_t, HornnState(push(h_t, state.history))
