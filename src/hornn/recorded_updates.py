"""Updates on a GPU: forward pass, backward pass and step of the optimizer recorded as one CUDA graph, and replayed.

A small network's update takes Python longer to launch than the GPU to compute. The losses and norms of replayed updates
stay on the GPU until somebody asks for them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch import Tensor

from hornn.columns import world_size
from hornn.kernels.recorded import Shelf, record
from hornn.network import NetworkState, SequenceModel
from hornn.optim.descent import ClippedOptimizer

ATTENDED = 50  # updates after which the host looks at the losses at the latest
# What a callback may want to see within an update.
WITHIN = ("on_before_backward", "on_after_backward", "on_before_optimizer_step", "on_before_zero_grad")


class Outcome(NamedTuple):
    """What an update gives: features (T, B, H), the state that the next one starts from, its summed loss in nats."""

    features: Tensor
    state: NetworkState
    nll: Tensor


def can_record(network: SequenceModel, callbacks: Sequence[Callback]) -> bool:
    """Whether whole updates can be: on a GPU, in one process, with loops that are recorded, and nobody looking in."""
    looks_in = any(is_overridden(hook, each, parent=Callback) for each in callbacks for hook in WITHIN)
    loops = network.device.type == "cuda" and network.scan_backend in ("graph", "native")
    return loops and world_size() == 1 and not network.head.waits and not looks_in


class Log:
    """Loss and norm of the updates that were replayed since the host last looked, on the GPU."""

    def __init__(self, device: torch.device) -> None:
        self.rows = torch.zeros(ATTENDED, 2, dtype=torch.float64, device=device)
        self.next = torch.zeros(1, dtype=torch.int64, device=device)
        self.counts: list[int] = []  # targets of each

    def write(self, nll: Tensor, grad_norm: Tensor) -> None:
        """Recorded: the next row."""
        self.rows.index_copy_(0, self.next, torch.stack([nll, grad_norm]).unsqueeze(0))
        self.next.add_(1)

    @property
    def is_full(self) -> bool:
        return len(self.counts) == ATTENDED

    def take(self) -> list[tuple[float, float, int]]:
        """Loss, norm and number of targets of each update, which the log then forgets. It waits for the GPU."""
        if not self.counts:
            return []
        rows, counts = self.rows[: len(self.counts)].tolist(), self.counts
        self.next.zero_()
        self.counts = []
        return [(nll, grad_norm, count) for (nll, grad_norm), count in zip(rows, counts, strict=True)]


class RecordedUpdate:
    """An update over chunks of these shapes, from a state that lies where the last replay left it."""

    free = True  # nobody waits for gradients of the last replay

    def __init__(
        self,
        update: Callable[..., Outcome],
        chunks: Sequence[Tensor],
        state: NetworkState,
        targets: Tensor,
        optimizer: ClippedOptimizer,
        log: Log,
    ) -> None:
        self.tokens, self.targets = torch.cat(list(chunks)), targets.clone()
        self.state = tuple(type(layer)(*(tensor.clone() for tensor in layer)) for layer in state)
        self.given = [float(group["lr"]) for group in optimizer.param_groups]
        self.rates = [torch.tensor(rate, dtype=torch.float32, device=targets.device) for rate in self.given]
        optimizer.zero_grad()  # to a gradient left over the graph would add, in memory that is given back below
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            parts = self.tokens.split([len(chunk) for chunk in chunks])
            self.features, after, nll = update(parts, self.state, self.targets)
            log.write(nll, optimizer.step_on_device(self.rates))
            # some of `after` may be tensors of `self.state`
            copies = [[tensor.clone() for tensor in layer] for layer in after]
            for layer, new in zip(self.state, copies, strict=True):
                for tensor, next_tensor in zip(layer, new, strict=True):
                    tensor.copy_(next_tensor)
        optimizer.zero_grad()  # the graph has gradients of its own

    def replay(
        self, chunks: Sequence[Tensor], state: NetworkState, targets: Tensor, rates: Sequence[float]
    ) -> None:
        """Afterwards `state` of this recording is the state that the next update starts from."""
        if len(chunks) > 1:
            torch.cat(list(chunks), out=self.tokens)
        else:
            self.tokens.copy_(chunks[0])
        self.targets.copy_(targets)
        if state is not self.state:
            for layer, given in zip(self.state, state, strict=True):
                for tensor, other in zip(layer, given, strict=True):
                    tensor.copy_(other)
        for place, rate in enumerate(rates):
            if rate != self.given[place]:
                self.rates[place].fill_(rate)
                self.given[place] = rate
        self.graph.replay()


class RecordedUpdates:
    """The recordings of one training, and what became of the updates that were replayed.

    `update(chunks, state, targets, scale)` leaves the gradient of an update, from the inputs of all chunks of its
    window, the state before them and the targets of the last one.
    """

    def __init__(
        self, network: SequenceModel, optimizer: ClippedOptimizer, update: Callable[..., Outcome]
    ) -> None:
        self.parameters = list(network.parameters())
        self.optimizer = optimizer
        self.update = update
        self.log = Log(network.device)
        self.shelf: Shelf[RecordedUpdate] = Shelf()

    def replay(
        self,
        chunks: Sequence[Tensor],
        state: NetworkState,
        targets: Tensor,
        scale: float,
        count: int,
        step: Callable[[], object],
    ) -> tuple[Tensor, NetworkState] | None:
        """One update on `count` targets, within the step of the optimizer that `step` makes.

        Returns the features and the state that the next update starts from; None where such an update is not recorded.
        """
        kind = (tuple(chunk.shape for chunk in chunks), targets.shape, scale)
        update = partial(self.update, scale=scale)
        make = partial(RecordedUpdate, update, chunks, state, targets, self.optimizer, self.log)
        recording = self.shelf.find(kind, lambda: record("an update", make))
        if recording is None:
            return None
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.optimizer.replay = partial(recording.replay, chunks, state, targets, rates)
        step()
        self.optimizer.replay = None
        torch.autograd.graph.increment_version(self.parameters)  # a copy in bf16 has to know
        self.log.counts.append(count)
        return recording.features, recording.state


def record_updates(
    network: SequenceModel,
    optimizer: torch.optim.Optimizer,
    update: Callable[..., Outcome],
    callbacks: Sequence[Callback],
) -> RecordedUpdates | None:
    """What records the updates of a training from here on; None where something keeps them from being recorded."""
    if not isinstance(optimizer, ClippedOptimizer) or not can_record(network, callbacks):
        return None
    return RecordedUpdates(network, optimizer, update)
