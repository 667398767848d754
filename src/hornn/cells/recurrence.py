"""A step said as linear maps and pointwise functions: all that a scan must know to defer what can wait."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Activation:
    """f of the sum of its operands; of an operand with a further leading axis the sum over that axis is added.

    `slope` is the derivative f'(a) as a function of y = f(a).
    """

    def __init__(self, f: Callable[[Tensor], Tensor], slope: Callable[[Tensor], Tensor]) -> None:
        self.f = f
        self.slope = slope

    def __call__(self, a: Tensor, *operands: Tensor) -> Tensor:
        for operand in operands:
            a = a + (operand.sum(0) if operand.ndim > a.ndim else operand)
        return self.f(a)


ACTIVATIONS = {
    "sigmoid": Activation(torch.sigmoid, lambda y: y - y * y),
    "tanh": Activation(torch.tanh, lambda y: 1 - y * y),
    "relu": Activation(torch.relu, lambda y: (y > 0).to(y.dtype)),
}
IDENTITY = Activation(lambda a: a, torch.ones_like)


class Input(NamedTuple):
    """The columns `start` to `stop` of the projected input u_t, n blocks of the register's width."""

    start: int
    stop: int


class Taps(NamedTuple):
    """Products of past values with matrices: W a_{t-lag}, or for several lags W_k a_{t-lag-k}, k = 0..K-1.

    `weight` is (n * width, width of a) for one lag, (K, n * width, width of a) for K consecutive ones. With
    lag 0 it is this step's value, of a register set before.
    """

    register: str
    weight: Tensor
    lag: int = 1


class Past(NamedTuple):
    """The value a_{t-lag} of a register of the same width, element by element."""

    register: str
    lag: int


class Vector(NamedTuple):
    """Numbers (width) that are the same at every step: a bias, a learned factor."""

    value: Tensor


Operand = Input | Taps | Past | Vector


class Register(NamedTuple):
    """One sequence of vectors that a step computes: a_t = function(operands).

    `function` works element by element on its operands, and on those of many steps at once: Input gives
    (..., width), or (..., n, width) where it has n > 1 blocks; Taps the same, with a leading axis (K, ...)
    where its weight has one; Past gives (..., width), Vector (width). It returns (..., width). A function
    with a method `slope` (of its result) has this derivative with respect to every operand; one with a method
    `partials` (of its result and operands) returns the derivative of each; others are differentiated by torch.
    """

    name: str
    width: int
    function: Callable[..., Tensor]
    operands: tuple[Operand, ...]


class Recurrence(NamedTuple):
    """The registers in the order in which a step sets them, and where the state and the output are found.

    `state` names for each field of the cell's state the register whose last values it holds, (B, W) or
    (K, B, W) newest first; or, for a field (L, B, W), the L registers whose last value it holds. y_t is the
    registers of `output` side by side. The weights are those of now: a recurrence is made for each scan.
    """

    registers: tuple[Register, ...]
    state: tuple[str | tuple[str, ...], ...]
    output: tuple[str, ...]


def find_partials(function: Any, result: Tensor, operands: list[Tensor]) -> list[Tensor]:
    """The derivative of `result` = function(*operands) with respect to each operand, a vector's at every step.

    As the function works element by element, the gradient of the sum of its results holds them all.
    """
    if hasattr(function, "partials"):
        return list(function.partials(result, *operands))
    with torch.enable_grad():
        leaves = [
            (operand.expand_as(result) if operand.ndim == 1 else operand).detach().requires_grad_()
            for operand in operands
        ]
        total = function(*leaves).sum()
    return list(torch.autograd.grad(total, leaves))
