"""A whole training update as a CUDA graph: launched at once, without the host."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import torch
from torch import Tensor

from hornn.network import NetworkState, detach_all

WARM_UP = 3  # updates that run as usual before the first capture, so that libraries have set themselves up


class Update(NamedTuple):
    """What an update leaves behind; on a GPU all of it is still there."""

    features: Tensor  # (T, B, H)
    nll: Tensor  # the chunk's, summed, in nats
    grad_norm: float | Tensor
    state: NetworkState  # after the chunk


class CapturedUpdate:
    """Runs `update(inputs, targets, state, scale)` by replaying a CUDA graph of it.

    The graph reads and writes fixed buffers, the carried state among them: what a call returns is overwritten by
    the next. It holds for one shape of chunk, one scale of the loss and one `key`, which names all else that is
    fixed in it, the learning rates; a chunk of another shape runs as usual, another scale or key is captured anew.

    Not measured: written without a GPU at hand.
    """

    def __init__(self, update: Callable[[Tensor, Tensor, NetworkState, float], Update]) -> None:
        self.update = update
        self.runs = 0
        self.key: Hashable = None
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(
        self, inputs: Tensor, targets: Tensor, state: NetworkState, scale: float, key: Hashable
    ) -> Update:
        if self.runs < WARM_UP:
            self.runs += 1
            return self.run_beside(inputs, targets, state, scale)
        if self.key is None:
            self.inputs, self.targets = inputs.clone(), targets.clone()
            self.state = tuple(type(layer)(*(tensor.clone() for tensor in layer)) for layer in state)
        if inputs.shape != self.inputs.shape:
            return self.update(inputs, targets, state, scale)
        if state is not self.state:
            copy_state(state, self.state)
        self.inputs.copy_(inputs)
        self.targets.copy_(targets)
        if (scale, key) != self.key:
            self.capture(scale)
            self.key = (scale, key)
        assert self.graph is not None
        self.graph.replay()
        return self.result

    def run_beside(self, inputs: Tensor, targets: Tensor, state: NetworkState, scale: float) -> Update:
        """Run it on another stream, as a capture will."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = self.update(inputs, targets, state, scale)
        torch.cuda.current_stream().wait_stream(stream)
        return result

    def capture(self, scale: float) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            result = self.update(self.inputs, self.targets, self.state, scale)
            copy_state(detach_all(result.state), self.state)
        self.result = result._replace(state=self.state)


def copy_state(source: NetworkState, target: NetworkState) -> None:
    for layer, into in zip(source, target, strict=True):
        for tensor, buffer in zip(layer, into, strict=True):
            buffer.copy_(tensor)
