"""Multilayer perceptrons: the operators that a deep recurrent network is made of, and their units."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import ACTIVATIONS
from hornn.checks import is_number, require_choice, require_range
from hornn.columns import drop

UNITS = (*ACTIVATIONS, "maxout", "lp")
LARGEST_P = 1e6  # in fp32 far more loses gradients, and this is the maximum already


class Units(nn.Module, ABC):
    """The units of a layer: pre-activations (..., pre_width) -> activations (..., width)."""

    def __init__(self, width: int, pieces: int = 1) -> None:
        super().__init__()
        self.width = width
        self.pieces = pieces
        self.pre_width = pieces * width  # rows of every matrix that feeds the layer, piece after piece

    @abstractmethod
    def forward(self, a: Tensor) -> Tensor:
        """(..., pre_width) -> (..., width)."""


class PointwiseUnits(Units):
    """f(a) of each pre-activation a. f is one of sigmoid, tanh, relu."""

    def __init__(self, width: int, activation: str) -> None:
        super().__init__(width)
        self.activation = activation
        self.f = ACTIVATIONS[activation]

    def forward(self, a: Tensor) -> Tensor:
        return self.f(a)


class MaxoutUnits(Units):
    """The largest of the k = `pieces` linear pieces of each unit: max_i a_i.

    Where pieces tie, the gradient goes to one of them. Source: Goodfellow et al. 2013. Departures: none.
    """

    def forward(self, a: Tensor) -> Tensor:
        return a.unflatten(-1, (self.pieces, self.width)).max(-2).values


class LpUnits(Units):
    """The normalised L_p norm of the k = `pieces` linear pieces of each unit.

        y = (1/k sum_{i=1..k} |a_i|^p)^(1/p)

    p = 1 is the mean of the absolute pieces, p = 2 their root mean square, a large p their maximum. p is
    finite and >= 1. With `learn_p` every unit learns its own, from p > 1 on:

        p = 1 + softplus(rho + b_p),   rho such that p is the given one at the start, b_p = 0

    Where all pieces are 0 the norm has no derivative; 0 is taken.

    Source: Gulcehre et al., "Learned-norm pooling" (2013), cited by the deep RNN paper, section 5.3.1, for
    the units of its last column of table 2. Departures: their centres c_i in |a_i - c_i| are the layer's
    biases; rho is kept apart from the parameter b_p so that rescaling the weights leaves p alone.
    Raises ValueError for a p that is not finite and >= 1 (> 1 if learned).
    """

    def __init__(self, width: int, pieces: int, p: float = 2.0, learn_p: bool = False) -> None:
        super().__init__(width, pieces)
        require_p(p, learn_p)
        self.fixed_p = float(p)
        self.b_p = nn.Parameter(torch.zeros(width)) if learn_p else None
        self.rho = p - 1 + math.log(-math.expm1(1 - p)) if learn_p else 0.0  # softplus(rho) = p - 1

    @property
    def p(self) -> Tensor | float:
        """The orders (width), or the one fixed order."""
        return self.fixed_p if self.b_p is None else 1 + F.softplus(self.rho + self.b_p)

    def forward(self, a: Tensor) -> Tensor:
        magnitudes = a.unflatten(-1, (self.pieces, self.width)).abs()
        # The norm is homogeneous: a constant scale s, the largest piece, cancels, and powers can't overflow.
        s = magnitudes.detach().amax(-2)
        ratios = magnitudes / torch.where(s > 0, s, 1).unsqueeze(-2)
        p = self.p
        # With a largest ratio of 1 the mean is at least 1/k; the bound holds only where all pieces are 0.
        return s * ratios.pow(p).mean(-2).clamp(min=0.5 / self.pieces).pow(1 / p)


def build_units(
    part: str, activation: str, width: int, pieces: int = 2, p: float = 2.0, learn_p: bool = False
) -> Units:
    """`width` units of the kind `activation`; `pieces`, `p` and `learn_p` concern maxout and lp alone.

    Raises ValueError, which names the argument `part` of the cell, for an unknown kind.
    """
    require_choice(part, activation, UNITS)
    if activation == "maxout":
        return MaxoutUnits(width, pieces)
    if activation == "lp":
        return LpUnits(width, pieces, p, learn_p)
    return PointwiseUnits(width, activation)


class Layer(nn.Module):
    """One layer: f(W z [+ S x] [+ side] [+ b]), its activations dropped with probability `dropout`.

    z is the layer below, x the input of the whole perceptron (S is a shortcut from it), side whatever else is
    added to the pre-activations. W (pre_width, below), S (pre_width, X), b (pre_width). Dropout is off in
    evaluation and rescales in training, so that expectations agree.
    """

    def __init__(
        self,
        units: Units,
        W: nn.Parameter,
        S: nn.Parameter | None = None,
        b: nn.Parameter | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.units = units
        self.W = W
        self.S = S
        self.b = b
        self.dropout = dropout

    def forward(self, z: Tensor, x: Tensor, side: Tensor | None = None) -> Tensor:
        a = F.linear(z, self.W, self.b)
        if self.S is not None:
            a = a + F.linear(x, self.S)
        if side is not None:
            a = a + side
        y: Tensor = self.units(a)
        return drop(y, self.dropout) if self.dropout and self.training else y


class Mlp(nn.ModuleList):
    """Layers on top of each other: z_0 = x, z_l = layer_l(z_{l-1}, x, side_l). Without layers: identity."""

    def forward(self, x: Tensor, sides: Sequence[Tensor | None] | None = None) -> Tensor:
        """x (..., X) and for each layer what is added to its pre-activations -> (..., width of the last)."""
        z = x
        for layer, side in zip(self, sides or [None] * len(self), strict=True):
            z = layer(z, x, side)
        return z


def require_p(p: float, learn_p: bool) -> None:
    """Raise ValueError unless p is 1 to `LARGEST_P`, and > 1 where it is learned."""
    lowest = "> 1 to be learned" if learn_p else ">= 1"
    holds = is_number(p) and (p > 1 if learn_p else p >= 1) and p <= LARGEST_P
    require_range("p", p, f"a number {lowest} and at most {LARGEST_P:g}", holds)
