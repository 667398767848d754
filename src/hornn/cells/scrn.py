"""The simple recurrent network and the structurally constrained recurrent network (SCRN).

Source of both: Mikolov, Joulin, Chopra, Mathieu & Ranzato, "Learning longer memory in recurrent neural
networks" (2015), and the code released with it, facebookarchive/SCRNNs.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell, learned_factor, saturation
from hornn.cells.elman import RnnState
from hornn.checks import require_choice, require_factor, require_truth, require_whole

CONTEXT_INPUTS = ("current", "previous")


class Srn(Cell):
    """Simple recurrent network, the baseline of the SCRN.

        h_t = sigmoid(A x_t + R h_{t-1}),   y_t = h_t

    x_t (B, I), h_t (B, H); A (H, I), R (H, H). In the paper x_t is one-hot, so that A is the embedding:
    with `embedded_input` there is no A and the input is already A x_t, looked up in an embedding table of
    width `input_size` = H. Without it A stands on top of the embedding.

    Source: equation (1), where sigmoid is printed without its minus sign. Departures: none; the paper does not say
    where the state starts; the released code starts it at 0.1.
    Raises ValueError for a size < 1, or an `input_size` other than H with `embedded_input`.
    """

    activation = "sigmoid"
    recurrent = ("R",)

    def __init__(self, input_size: int, hidden_size: int, embedded_input: bool = True) -> None:
        super().__init__(input_size, hidden_size)
        require_truth(embedded_input=embedded_input)
        if embedded_input and input_size != hidden_size:
            raise ValueError(
                f"embedded_input=true needs input_size={hidden_size}, the hidden_size, got {input_size}:"
                f" set network.embedding_size={hidden_size}, or embedded_input=false"
            )
        self.A = None if embedded_input else self.weight(hidden_size, input_size)
        self.R = self.weight(hidden_size, hidden_size)

    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.zeros(batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return x if self.A is None else F.linear(x, self.A)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        h_t = torch.sigmoid(u_t + F.linear(state.h, self.R))
        return h_t, RnnState(h_t)

    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        return {"input": u_t, "pooled": F.linear(state.h, self.R)}


class ScrnState(NamedTuple):
    h: Tensor  # (B, H)
    s: Tensor  # (B, C)


class Scrn(Cell):
    """Structurally constrained recurrent network: hidden units beside slow, linear context units.

        s_t = alpha s_{t-1} + (1 - alpha) B x_t
        h_t = sigmoid(P s_t + A x_t + R h_{t-1})
        y_t = [h_t, s_t]

    The output layer sees both states, so that its one matrix [U, V] gives U h_t + V s_t. `context_input`
    says which context feeds h_t: the `current` s_t, as above, or the `previous` s_{t-1}. With `adaptive`
    every context unit learns its own alpha = sigmoid(logit(alpha) + beta); beta (C) starts at 0. So alpha starts as
    given, whatever factor the network applies to all initial weights.

    x_t (B, I), h_t (B, H), s_t (B, C), C = `context_size`; A (H, I), B (C, I), P (H, C), R (H, H). In the paper
    x_t is one-hot, so that A and B are the embeddings: with `embedded_input` there are no A and B and the
    input is already [A x_t, B x_t], looked up in an embedding table of width `input_size` = H + C. Without it
    A and B stand on top of the embedding. H or C may be 0; C = 0 is the SRN, H = 0 leaves the context alone.

    Source: equations (4)-(6), where (4) is printed with B s_t for B x_t, and (8) for `adaptive`. Departures:
    the paper's beta is our logit(alpha) + beta; its start is not published. The released code feeds the
    previous context and starts both states at 0.1, of which the paper says nothing; it has no `adaptive`.
    Raises ValueError for a size < 0, both sizes 0, an alpha outside (0, 1), an unknown `context_input`, or an
    `input_size` other than H + C with `embedded_input`.
    """

    activation = "sigmoid"
    recurrent = ("P", "R")
    A: Tensor
    B: Tensor
    P: Tensor
    R: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        context_size: int = 40,
        alpha: float = 0.95,
        adaptive: bool = False,
        context_input: str = "current",
        embedded_input: bool = True,
    ) -> None:
        require_whole(0, hidden_size=hidden_size, context_size=context_size)
        if hidden_size + context_size == 0:
            raise ValueError("hidden_size and context_size are both 0: at least one must be >= 1")
        super().__init__(input_size, hidden_size + context_size)
        require_truth(adaptive=adaptive, embedded_input=embedded_input)
        require_choice("context_input", context_input, CONTEXT_INPUTS)
        require_factor(alpha)
        if embedded_input and input_size != self.output_size:
            raise ValueError(
                f"embedded_input=true needs input_size={self.output_size}, hidden_size + context_size ="
                f" {hidden_size} + {context_size}, got {input_size}:"
                f" set network.embedding_size={self.output_size}, or embedded_input=false"
            )
        self.hidden_size = hidden_size
        self.context_size = context_size
        self.alpha = alpha
        self.context_input = context_input
        self.embedded_input = embedded_input
        if not embedded_input:
            self.place("A", hidden_size, input_size)
            self.place("B", context_size, input_size)
        self.place("P", hidden_size, context_size)
        self.place("R", hidden_size, hidden_size)
        self.beta = self.bias(True, context_size) if adaptive and context_size else None

    @classmethod
    def embedding_width(cls, hidden_size: int, **arguments: Any) -> int:
        both = hidden_size + int(arguments.get("context_size", 40))
        return both if arguments.get("embedded_input", True) else hidden_size or both

    def place(self, name: str, *shape: int) -> None:
        """Set the weight called `name`; where a layer has no units it is an empty constant, not a parameter."""
        if 0 in shape:
            self.register_buffer(name, torch.empty(shape), persistent=False)
        else:
            setattr(self, name, self.weight(*shape))

    def initial_state(self, batch_size: int) -> ScrnState:
        # R is there even where no weight is, with no hidden units and an embedded input
        return ScrnState(*(self.R.new_zeros(batch_size, n) for n in (self.hidden_size, self.context_size)))

    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, H + C): [A x_t, B x_t]."""
        if self.embedded_input:
            return x
        # a product in bf16 has no place for a matrix without rows
        return torch.cat([F.linear(x, W) for W in (self.A, self.B) if len(W)], dim=-1)

    def learned_factors(self) -> Tensor | None:
        return None if self.beta is None else learned_factor(self.alpha, self.beta)

    def factor_inputs(self, u: Tensor) -> Tensor | None:
        """B x_t."""
        return None if self.beta is None else u[..., self.hidden_size :]

    def saturation(self, y: Tensor) -> float:
        """The saturation of the hidden units; the context is linear."""
        return saturation(y[..., : self.hidden_size], self.activation) if self.hidden_size else 0.0

    def contexts(self, b_t: Tensor, state: ScrnState) -> tuple[Tensor, Tensor]:
        """s_t, and P times the context that feeds h_t."""
        alpha = self.alpha if self.beta is None else learned_factor(self.alpha, self.beta)
        s_t = torch.lerp(b_t, state.s, alpha)  # alpha s_{t-1} + (1 - alpha) B x_t
        return s_t, F.linear(s_t if self.context_input == "current" else state.s, self.P)

    def step(self, u_t: Tensor, state: ScrnState) -> tuple[Tensor, ScrnState]:
        a_t, b_t = u_t.split([self.hidden_size, self.context_size], dim=-1)
        s_t, context = self.contexts(b_t, state)
        h_t = torch.sigmoid(context + a_t + F.linear(state.h, self.R))
        return torch.cat([h_t, s_t], dim=-1), ScrnState(h_t, s_t)

    def paths(self, u_t: Tensor, state: ScrnState) -> dict[str, Tensor]:
        """Of the hidden units; the context is added up without an activation."""
        a_t, b_t = u_t.split([self.hidden_size, self.context_size], dim=-1)
        context, fast = self.contexts(b_t, state)[1], F.linear(state.h, self.R)
        return {"input": a_t, "context": context, "h_{t-1}": fast, "pooled": context + fast}
