"""Which loops are recorded; that a recording computes what the loop does is tested on a GPU (tests/gpu)."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hornn.cells.elman import Rnn
from hornn.kernels import recorded
from hornn.kernels.recorded import MOST, RECURS, Shelf, run_recorded


def recording() -> Any:
    return SimpleNamespace(free=True)


def test_what_recurs_is_recorded() -> None:
    shelf = Shelf()
    assert [shelf.find("long", recording) for _ in range(RECURS)] == [None] * RECURS
    found = shelf.find("long", recording)
    assert found is not None
    assert shelf.find("long", recording) is found
    assert shelf.find("short", recording) is None


def test_one_that_waits_for_its_gradients_is_left_alone() -> None:
    shelf = Shelf()
    found = [shelf.find("loop", recording) for _ in range(RECURS + 1)]
    found[-1].free = False
    second = shelf.find("loop", recording)
    assert second is not None
    assert second is not found[-1]
    found[-1].free = True
    assert shelf.find("loop", recording) is found[-1]


def test_a_cell_has_so_many_recordings_and_no_more() -> None:
    shelf = Shelf()
    for kind in range(2 * MOST):
        for _ in range(RECURS + 1):
            shelf.find(kind, recording)
    assert sum(map(len, shelf.recordings.values())) == MOST


def test_a_step_that_waits_for_the_gpu_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(recorded, "Recording", refuse)
    cell = Rnn(2, 3)
    loop = (lambda u, state: (u, state), cell, torch.zeros(4, 1, 3), cell.initial_state(1))
    for _ in range(RECURS):
        run_recorded(*loop)
    with pytest.raises(
        RuntimeError,
        match=r"^the loop over the steps of Rnn cannot be recorded .* \(CUDA error: .* capturing\)",
    ):
        run_recorded(*loop)
