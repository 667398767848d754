"""The time loop on a GPU: all steps of a chunk recorded once, as CUDA graphs, and replayed.

A step of a small cell takes a GPU less time than it takes Python to launch. A recording is launched as a whole.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import functional_call

from hornn.cells.base import Cell
from hornn.columns import width, world_size

RECURS = 3  # loops of one kind that run as written before one is recorded: a rare length is not worth the recording
MOST = 8  # recordings of one cell; each keeps the memory of its loop
WARM_UP = 2  # runs before a recording: libraries set themselves up in their first

Loop = Callable[[Tensor, Any], tuple[Tensor, Any]]


class Called(nn.Module):
    """A loop as a module, which can be called with other tensors in the place of the cell's parameters."""

    def __init__(self, loop: Loop, cell: Cell) -> None:
        super().__init__()
        self.loop = loop
        self.cell = cell

    def forward(self, u: Tensor, state: Any) -> tuple[Tensor, Any]:
        return self.loop(u, state)


class Token:
    """Held by whatever still needs the numbers of the last replay for its gradients."""


class Recording:
    """A loop over inputs u (T, B, G) from a state, for these shapes and these weights where they lie.

    `differentiable`: with the loop of the gradients. What is replayed reads and writes the same memory each time: it is
    `free` while nobody waits for the gradients of the last replay.
    """

    def __init__(self, loop: Loop, cell: Cell, u: Tensor, state: Any, differentiable: bool) -> None:
        self.holder: Callable[[], Token | None] = lambda: None
        self.cotangents: list[Tensor | None] = []
        self.gradients: list[Tensor | None] = []
        random = torch.cuda.get_rng_state(u.device)
        with torch.inference_mode(False), torch.set_grad_enabled(differentiable):
            self.inputs = [tensor.detach().clone().requires_grad_(differentiable) for tensor in (u, *state)]
            self.parameters = [p for p in cell.parameters() if p.requires_grad] if differentiable else []
            # leaves of their own on the same memory: a parameter's node in autograd belongs to the caller's stream
            self.leaves = {
                f"cell.{name}": p.detach().requires_grad_(differentiable and p.requires_grad)
                for name, p in cell.named_parameters()
            }
            called = Called(loop, cell)

            def run() -> list[Tensor]:
                u, *before = self.inputs
                y, last = functional_call(called, self.leaves, (u, type(state)(*before)))
                return [y, *last]

            side = torch.cuda.Stream(u.device)
            side.wait_stream(torch.cuda.current_stream(u.device))
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    outputs = run()
                    self.differentiate(outputs, [torch.zeros_like(tensor) for tensor in outputs])
            torch.cuda.current_stream(u.device).wait_stream(side)
            self.forward = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.forward, capture_error_mode="thread_local"):
                outputs = run()
            if differentiable:
                self.cotangents = [
                    torch.zeros_like(tensor) if tensor.requires_grad else None for tensor in outputs
                ]
                self.backward = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.backward, self.forward.pool(), capture_error_mode="thread_local"):
                    self.gradients = self.differentiate(outputs, self.cotangents)
            self.outputs = [tensor.detach() for tensor in outputs]
        torch.cuda.set_rng_state(random, u.device)

    def differentiate(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients of the inputs and of the parameters; None where there is none."""
        known = [tensor.requires_grad for tensor in outputs]
        if not any(known):
            return []
        leaves = [*self.inputs, *(leaf for leaf in self.leaves.values() if leaf.requires_grad)]
        smooth, given = list(compress(outputs, known)), list(compress(cotangents, known))
        return list(torch.autograd.grad(smooth, leaves, given, allow_unused=True))

    @property
    def free(self) -> bool:
        return self.holder() is None

    def replay(self, u: Tensor, state: Any) -> tuple[Tensor, Any]:
        y, *last = Replay.apply(self, u, *state, *self.parameters)
        return y, type(state)(*last)


class Replay(torch.autograd.Function):
    """A recording as a function of its inputs and of the parameters."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, *tensors: Tensor) -> tuple[Tensor, ...]:
        for own, given in zip(recording.inputs, tensors, strict=False):
            own.copy_(given)
        recording.forward.replay()
        outputs = tuple(tensor.clone() for tensor in recording.outputs)
        if recording.gradients:
            ctx.recording, ctx.token = recording, Token()
            recording.holder = weakref.ref(ctx.token)
            ctx.set_materialize_grads(False)
            fixed = [o for o, c in zip(outputs, recording.cotangents, strict=True) if c is None]
            ctx.mark_non_differentiable(*fixed)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        if ctx.token is None:
            raise RuntimeError(
                "the gradients of a recorded loop were asked for twice: use network.backend=eager"
            )
        recording, ctx.token = ctx.recording, None
        for own, given in zip(recording.cotangents, cotangents, strict=True):
            if own is not None:
                own.zero_() if given is None else own.copy_(given)
        recording.backward.replay()
        return None, *(None if grad is None else grad.clone() for grad in recording.gradients)


class Held(Protocol):
    @property
    def free(self) -> bool: ...


Kept = TypeVar("Kept", bound=Held)


class Shelf(Generic[Kept]):
    """The recordings of one cell or training, and how often each kind of work was done without one."""

    def __init__(self) -> None:
        self.seen: Counter[Hashable] = Counter()
        self.recordings: dict[Hashable, list[Kept]] = {}

    def find(self, kind: Hashable, make: Callable[[], Kept]) -> Kept | None:
        """A free recording of this kind; None where it is to run as written."""
        held = self.recordings.setdefault(kind, [])
        for recording in held:
            if recording.free:
                return recording
        self.seen[kind] += 1
        if self.seen[kind] <= RECURS or sum(map(len, self.recordings.values())) == MOST:
            return None
        held.append(make())
        return held[-1]


SHELVES: WeakKeyDictionary[Cell, Shelf[Recording]] = WeakKeyDictionary()


def run_recorded(loop: Loop, cell: Cell, u: Tensor, state: Any, *options: Hashable) -> tuple[Tensor, Any]:
    """`loop` over u (T, B, G) from `state`, replayed where a kind of it recurs; `options` tell its kinds apart, too.

    Within a recording of more than the loop it runs as written. Raises RuntimeError where it cannot be recorded.
    """
    if u.is_cuda and torch.cuda.is_current_stream_capturing():
        return loop(u, state)
    tensors = [u, *state]
    differentiable = torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *cell.parameters()))
    weights = tuple(tensor.data_ptr() for tensor in (*cell.parameters(), *cell.buffers()))
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
    kind = (shapes, width(), weights, differentiable, cell.training, options)
    shelf = SHELVES.setdefault(cell, Shelf())
    what = f"the loop over the steps of {type(cell).__name__}"
    make = partial(Recording, loop, cell, u, state, differentiable)
    recording = shelf.find(kind, lambda: record(what, make))
    return loop(u, state) if recording is None else recording.replay(u, state)


def record(what: str, make: Callable[[], Kept]) -> Kept:
    """The recording that `make` makes of `what`, such as `an update`. RuntimeError with a remedy where it cannot."""
    try:
        return make()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise RuntimeError(
            f"{what} cannot be recorded on the GPU ({reason}): leave out of `step` what waits for the GPU, such as "
            ".item(), or set network.backend=eager"
        ) from error


def find_graph_obstacle(device: torch.device, max_norm: float | None) -> str | None:
    """Why loops cannot be recorded on this device; None if they can."""
    if device.type != "cuda":
        return "CUDA graphs are for GPUs"
    if max_norm is not None and world_size() > 1:
        return "network.state_grad_norm bounds the gradient of the columns of all processes together"
    return None
