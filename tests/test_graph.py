"""An update as a CUDA graph gives what the same update gives without one."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from hornn.cells.elman import RnnState
from hornn.graph import CapturedUpdate, Update, copy_state
from hornn.network import NetworkState

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("model", ["rnn", "lstm", "hornn_max", "hornn_fofe", "hornn_gated"])
@pytest.mark.parametrize("clip", ["element", "norm"])
def test_a_run_of_graphs_is_the_run(
    command: Callable[..., Any], text: list[str], tmp_path: Path, model: str, clip: str
) -> None:
    """With a ragged last chunk, a rate that falls at every epoch and restored weights."""
    found = []
    for graph in ("false", "true"):
        done = command(
            "train",
            *text,
            "trainer=gpu",
            f"model={model}",
            f"cuda_graph={graph}",
            "chunks_per_batch=4",
            "network.precision=fp32",
            "model.hidden_size=8",
            "optimizer.clip=0.1",
            f"optimizer.clip_mode={clip}",
            "schedule.threshold=10",
            "schedule.restore_best=true",
            "trainer.max_epochs=4",
            "logger=csv",
            f"run_dir={tmp_path / graph}",
        )
        assert done.code == 0, done.err
        found.append(json.loads((tmp_path / graph / "result.json").read_text())["test_ppl"])
    assert found[1] == pytest.approx(found[0], rel=1e-4)


def test_states_are_copied_field_by_field() -> None:
    source = ((torch.ones(2, 3), torch.full((1, 2, 3), 2.0)),)
    target = ((torch.zeros(2, 3), torch.zeros(1, 2, 3)),)
    copy_state(source, target)
    assert torch.equal(target[0][0], source[0][0])
    assert torch.equal(target[0][1], source[0][1])


class ReplayedByHand(CapturedUpdate):
    """Without a GPU: what a graph would replay is called, on the same fixed buffers."""

    captures = 0

    def run_beside(self, *arguments: Any) -> Update:
        return self.update(*arguments)

    def capture(self, scale: float) -> None:
        self.captures += 1
        self.graph = SimpleNamespace(replay=lambda: self.run(scale))  # type: ignore[assignment]

    def run(self, scale: float) -> None:
        result = self.update(self.inputs, self.targets, self.state, scale)
        copy_state(result.state, self.state)
        self.result = result._replace(state=self.state)


def test_buffers_carry_the_state_and_the_scale_of_each_chunk_counts() -> None:
    def update(inputs: Tensor, targets: Tensor, state: NetworkState, scale: float) -> Update:
        h = RnnState(state[0].h + inputs.sum() * scale)
        return Update(inputs, targets.sum(), 0.0, (h,))

    chunks = [torch.full((length, 2), float(k)) for k, length in enumerate([3] * 7 + [2] + [3] * 4)]
    scales = [0.5] * 6 + [0.25] + [0.5] * 5
    captured = ReplayedByHand(update)
    start: NetworkState = (RnnState(torch.zeros(2, 1)),)
    state, expected = start, start
    for chunk, scale in zip(chunks, scales, strict=True):
        found = captured(chunk, chunk, state, scale, "rates")
        state, nll = found.state, found.nll.clone()
        wanted = update(chunk, chunk, expected, scale)
        expected = wanted.state
        assert torch.equal(state[0].h, expected[0].h)
        assert torch.equal(nll, wanted.nll)
    assert captured.captures == 3  # the first scale, the other one, and the first again
