"""The contract of a recurrent cell: one step of a recurrence, all else is the scan's."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hornn.checks import require_choice, require_positive, require_truth

INIT_STD = 0.1  # of every weight, HORNN paper section 4
STD: ContextVar[float] = ContextVar("STD", default=INIT_STD)  # of the weights that are drawn now

Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu}

State = Any  # a NamedTuple of tensors of shape (..., B, width), one type per cell


@contextmanager
def drawn_with(std: float) -> Iterator[None]:
    """Within it `Cell.weight` draws from N(0, std^2)."""
    before = STD.set(std)
    try:
        yield
    finally:
        STD.reset(before)


def find_activation(name: str) -> Activation:
    """Return the pointwise function called `name`; ValueError names the choices."""
    require_choice("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


def learned_factor(alpha: float, beta: Tensor) -> Tensor:
    """sigmoid(logit(alpha) + beta): a forgetting factor that is `alpha` where beta is 0, as biases start."""
    return torch.sigmoid(math.log(alpha / (1 - alpha)) + beta)


def is_bias(name: str) -> bool:
    """Whether the parameter of this name is a bias, a vector or a row for each layer: b.., and d of the NNLM."""
    last = name.rpartition(".")[2]
    return last == "d" or last.startswith("b")


class Cell(nn.Module, ABC):
    """One step of a recurrence.

    A cell has an `input_size`, a `hidden_size`, an `output_size` (the width of y_t) and an `activation`, the
    name of the function that bounds y_t. Its state is a NamedTuple of tensors of shape (..., B, width): the batch is
    the second last dimension of each. Nothing is remembered on `self`.

    Weights are (out, in) matrices, drawn by `weight` from N(0, 0.1^2) as the HORNN paper does, or from N(0, std^2)
    within `drawn_with(std)`; biases start at 0. A parameter that is not drawn so starts as the cell says.
    """

    activation: str
    recurrent: ClassVar[tuple[str, ...]] = ("W_h",)  # how the names of the matrices that act on a state begin
    # Tensors of the state that only count: no output varies smoothly with them.
    counters: ClassVar[tuple[str, ...]] = ()
    # Tensors of the state that hold several steps -> place of the newest.
    histories: ClassVar[Mapping[str, int]] = {}

    def __init__(self, input_size: int, hidden_size: int, output_size: int | None = None) -> None:
        super().__init__()
        require_positive(hidden_size=hidden_size, input_size=input_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = hidden_size if output_size is None else output_size

    @classmethod
    def embedding_width(cls, hidden_size: int, **arguments: Any) -> int:
        """The width of an embedding that fits below the cell with these arguments: the width of its state."""
        return hidden_size

    @staticmethod
    def weight(*shape: int) -> nn.Parameter:
        """A weight of the given (..., out, in) shape, drawn from N(0, std^2)."""
        # Shapes alone; to draw them loads torch's compiler, a second.
        if torch.get_default_device().type == "meta":
            return nn.Parameter(torch.empty(shape))
        # two products, so that the weights of a seed keep every bit
        return nn.Parameter(torch.randn(shape).mul_(INIT_STD).mul_(STD.get() / INIT_STD))

    def bias(self, wanted: bool, *shape: int) -> nn.Parameter | None:
        """A zero bias where one is wanted, else None. ValueError unless `wanted` is true or false."""
        require_truth(bias=wanted)
        return nn.Parameter(torch.zeros(shape)) if wanted else None

    def zeros(self, *shape: int) -> Tensor:
        """Zeros in the dtype and on the device of the parameters."""
        return next(self.parameters()).new_zeros(shape)

    def recurrent_weights(self) -> list[nn.Parameter]:
        """The matrices that act on a state of the step before."""
        return [p for name, p in self.named_parameters() if name.startswith(self.recurrent) and p.ndim > 1]

    @abstractmethod
    def initial_state(self, batch_size: int) -> State:
        """The state before the first step: constants, zeros unless the cell says otherwise."""

    @abstractmethod
    def project_input(self, x: Tensor) -> Tensor:
        """(T, B, I) -> (T, B, G): all that does not depend on the state, for all time at once.

        Each row of the result is a function of its own input alone: where words repeat, each is projected once.
        """

    @abstractmethod
    def step(self, u_t: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: (B, G) and the state before it -> y_t (B, W) and the state after it."""

    def all_steps(self, u: Tensor, state: State) -> tuple[Tensor, State]:
        """(T, B, G) and the state before them -> y (T, B, W) and the state after them, without a loop over time.

        For a cell of which no step waits for another, as where the state holds past inputs alone; other cells leave
        `all_steps` out. It must agree with the loop over `step`: each training begins with a comparison of outputs and
        states. `all_steps` counts for the class that defines it and for subclasses with the same step.
        """
        raise NotImplementedError(f"{type(self).__name__} has no all_steps")

    def state_after(self, u: Tensor, state: State) -> State:
        """The state after the steps of u (T, B, G), whose outputs are not needed, for a cell with an `all_steps`."""
        return self.all_steps(u, state)[1]

    @classmethod
    def is_parallel(cls) -> bool:
        """Whether the cell has an `all_steps` of its step: not one of a parent whose step it replaces."""
        owner = next(parent for parent in cls.__mro__ if {"step", "all_steps"} & vars(parent).keys())
        return owner is not Cell and "all_steps" in vars(owner)

    def project_output(self, y: Tensor) -> Tensor:
        """(T, B, W) -> (T, B, output_size): what follows the recurrence, for all time at once."""
        return y

    def newest(self, state: State) -> dict[str, Tensor]:
        """What of a state the last step made, by the names of its tensors, without older steps and without counters."""
        parts = {name: tensor for name, tensor in state._asdict().items() if name not in self.counters}
        return {
            name: tensor[self.histories[name]] if name in self.histories else tensor
            for name, tensor in parts.items()
            if tensor.numel()
        }

    def __init_subclass__(cls) -> None:
        """A cell with a step of its own tells its own paths, or none: inherited paths belong to the inherited step.

        Likewise an inherited `state_after` belongs to the inherited `all_steps`.
        """
        super().__init_subclass__()
        if "step" in vars(cls) and "paths" not in vars(cls):
            cls.paths = Cell.paths  # type: ignore[method-assign]
        if "all_steps" in vars(cls) and "state_after" not in vars(cls):
            cls.state_after = Cell.state_after  # type: ignore[method-assign]

    def paths(self, u_t: Tensor, state: State) -> dict[str, Tensor]:
        """What the next step adds up before its activation, by name, each (B, width); nothing if a cell does not tell.

        `input` is the part of the input and `pooled` all feedback together, so that y_t = f(input + pooled) where both
        are there. The others are feedback paths, each as it is pooled.
        """
        return {}

    def learned_factors(self) -> Tensor | None:
        """The forgetting factors that training moves, as they stand; None for a cell that has none."""
        return None

    def factor_inputs(self, u: Tensor) -> Tensor | None:
        """(T, B, G) -> (T, B, C): what each unit with a learned factor of its own reads; None where there are none."""
        return None

    def saturation(self, y: Tensor) -> float:
        """The share of outputs (T, B, output_size) whose gradient is nearly lost."""
        return saturation(y, self.activation)


def push(newest: Tensor, history: Tensor) -> Tensor:
    """The history (K, B, W), newest first, with `newest` (B, W) and without its oldest."""
    return torch.cat([newest.unsqueeze(0), history[:-1]])


def saturation(y: Tensor, activation: str) -> float:
    """The share of outputs whose gradient is nearly lost: within 0.02 of a bound, 0 for relu, none if unbounded."""
    if activation == "relu":
        flat = y <= 0
    elif activation == "sigmoid":
        flat = (y < 0.02) | (y > 0.98)
    elif activation == "tanh":
        flat = y.abs() > 0.98
    else:
        return 0.0
    return float(flat.float().mean())
