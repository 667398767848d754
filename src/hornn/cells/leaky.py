"""The recurrent network of leaky integrators."""

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.elman import Rnn, RnnState
from hornn.checks import is_number, require_range


class LeakyRnn(Rnn):
    """RNN whose units keep a part of what they held: leaky integration.

        h_t = (1 - a) h_{t-1} + a f(W_in x_t + W_h h_{t-1} [+ b]),   y_t = h_t

    a = `leak_rate`, 0 < a <= 1, is the same for all units and fixed; a unit forgets with a time constant of
    about 1 / a steps. Other arguments, shapes and errors: as in `Rnn`, which is the case a = 1; ValueError for a
    leak_rate outside (0, 1].

    Source: Jaeger et al., "Optimization and applications of echo state networks with leaky-integrator
    neurons" (2007), which the SCRN paper (Mikolov et al. 2015), section 2.2, compares itself with;
    the equation is as recalled, not checked against that text.
    Departures: the recurrent weights are trained; that paper gives no leak rate for language modelling.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        leak_rate: float = 0.5,
        activation: str = "sigmoid",
        bias: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size, activation, bias)
        holds = is_number(leak_rate) and 0 < leak_rate <= 1
        require_range("leak_rate", leak_rate, "a number above 0 and at most 1", holds)
        self.leak_rate = leak_rate

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        candidate = self.f(u_t + F.linear(state.h, self.W_h))
        h_t = torch.lerp(state.h, candidate, self.leak_rate)
        return h_t, RnnState(h_t)

    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        """The feedback alone: y_t is more than f of what is added up."""
        return {"W_h h_{t-1}": F.linear(state.h, self.W_h)}
