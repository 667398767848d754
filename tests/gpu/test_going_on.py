"""A run that was cut off in mid-epoch goes on as if it had not been, on the GPU, from it and to it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from gpu.conftest import Curve
from gpu.test_epochs import OPTIMIZERS, SETTINGS, TOLERANCE
from hornn.run.keeper import PAYLOAD, RunKeeper

pytestmark = pytest.mark.gpu

CUT = 20  # updates, the sixth of the second epoch; the last checkpoint before is one of mid-epoch, too


class Killed(BaseException):
    """What a SIGKILL is to the program: nothing gets to run after it."""


def cut_off(curve: Curve, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Run until the update number `CUT`, in the folder `cut`."""
    original = RunKeeper.on_train_batch_end

    def patched(self: RunKeeper, trainer: Any, *args: Any) -> None:
        original(self, trainer, *args)
        if trainer.global_step == CUT:
            raise Killed

    monkeypatch.setattr(RunKeeper, "on_train_batch_end", patched)
    with pytest.raises(Killed):
        curve("cut", *words)
    monkeypatch.undo()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("before", "after", "backend"),
    [("gpu", "gpu", "eager"), ("gpu", "gpu", "graph"), ("gpu", "cpu", "auto"), ("cpu", "gpu", "auto")],
)
def test_a_run_that_was_cut_off(
    before: str,
    after: str,
    backend: str,
    optimizer: str,
    curve: Curve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it stays on the GPU with noise and dropout, whose random state is kept; a CPU draws other numbers."""
    words = [f"optimizer={optimizer}", *SETTINGS.get(optimizer, ()), "checkpoint_every=3", "bptt_window=10"]
    words += [f"network.backend={backend}"]
    if before == after:
        words += ["weight_noise=0.05", "network.dropout=0.3"]
    expected = curve("whole", *words, f"trainer={before}")
    cut_off(curve, monkeypatch, *words, f"trainer={before}")
    saved = torch.load(tmp_path / "cut" / "last.ckpt", weights_only=True)
    assert 14 < saved["global_step"] < CUT
    assert (saved[PAYLOAD]["random_gpu"] is not None) == (before == "gpu")
    found = curve("cut", *words, f"trainer={after}")
    assert len(found) == len(expected) == 2
    for epoch, numbers in zip(found, expected, strict=True):
        assert epoch == pytest.approx(numbers, rel=TOLERANCE)


def test_recorded_loops_draw_what_unrecorded_ones_draw(
    curve: Curve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on records its loops anew, at other updates than the run that was not cut off."""
    words = ("model=dots_rnn", "model.transition_dropout=0.2", "model.output_dropout=0.5", "trainer=gpu")
    recorded = (*words, "network.backend=graph", "checkpoint_every=3")
    expected = curve("whole", *words)
    cut_off(curve, monkeypatch, *recorded)
    for epoch, numbers in zip(curve("cut", *recorded), expected, strict=True):
        assert epoch == pytest.approx(numbers, rel=TOLERANCE)
