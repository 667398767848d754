"""The columns of a batch, shared among the processes of a run so that together they compute what one alone would.

Every process draws the random numbers of all columns, so its generator stays equal to the generator of a process that
holds them all.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributed import all_gather, all_reduce, get_rank, get_world_size, is_initialized

_width: int | None = None  # columns of the batch in work, over all processes


class Share(NamedTuple):
    """The columns first ... first + held - 1 of a batch, which one process scores.

    A process without columns (held 0) reads the first column and scores nothing, so that it can take part in
    whatever the others do together.
    """

    first: int
    held: int

    @property
    def read(self) -> slice:
        """The columns that the process reads."""
        return slice(self.first, self.first + self.held) if self.held else slice(0, 1)


def share(width: int, rank: int, world_size: int) -> Share:
    """The columns of process `rank`, of `width` in all: the first `width mod world_size` processes have one more."""
    each, more = divmod(width, world_size)
    return Share(rank * each + min(rank, more), each + (rank < more))


def world_size() -> int:
    return get_world_size() if is_initialized() else 1


def set_width(width: int) -> None:
    """Say how many columns the batch has that the processes now work on: each of them sees its own alone."""
    global _width
    _width = width


def width() -> int | None:
    """How many columns that batch has; None before it was said."""
    return _width


def total(value: Tensor) -> Tensor:
    """The sum of `value` over all processes."""
    if world_size() == 1:
        return value
    value = value.clone()
    all_reduce(value)
    return value


def gather(tensor: Tensor) -> Tensor:
    """A tensor (..., B, W) of the columns that this process reads -> the columns of all processes."""
    if world_size() == 1:
        return tensor
    assert _width is not None
    shares = [share(_width, rank, world_size()) for rank in range(world_size())]
    most = max(shares[0].held, 1)
    missing = most - tensor.size(-2)
    padded = (
        torch.cat([tensor, tensor[..., :missing, :]], dim=-2).contiguous() if missing else tensor.contiguous()
    )
    parts = [torch.empty_like(padded) for _ in shares]
    all_gather(parts, padded)
    return torch.cat([part[..., : one.held, :] for part, one in zip(parts, shares, strict=True)], dim=-2)


def drop(x: Tensor, rate: float, same_at_all_steps: bool = False) -> Tensor:
    """Dropout of x (..., B, W): numbers are 0 with probability `rate`, the others are divided by 1 - rate.

    With `same_at_all_steps` one mask (B, W) serves x (T, B, W).
    """
    shape = x.shape[1:] if same_at_all_steps else x.shape
    if world_size() == 1:
        mask = x.new_empty(shape).bernoulli_(1 - rate)
    else:
        assert _width is not None
        mask = x.new_empty(*shape[:-2], _width, shape[-1]).bernoulli_(1 - rate)
        mask = mask[..., share(_width, get_rank(), world_size()).read, :]
    return x * mask / (1 - rate)
