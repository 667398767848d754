"""An update as a CUDA graph gives what the same update gives without one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hornn.graph import copy_state

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
