"""Lightning stores a stream's position with the loop and brings it back."""

from pathlib import Path

import numpy as np
import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor

from hornn.data.base import Chunk
from hornn.data.streams import ChunkStream


class Recorder(LightningModule):
    """Remembers the chunks that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[tuple[int, int, bool]] = []

    def training_step(self, chunk: Chunk, index: int) -> Tensor:
        self.seen.append((index, int(chunk.targets[0, 0]), chunk.first))
        return self.weight.sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


def train(folder: Path, checkpoint: Path | None = None) -> list[tuple[int, int, bool]]:
    recorder = Recorder()
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ModelCheckpoint(folder, "{step}", save_top_k=-1, every_n_train_steps=1)],
    )
    trainer.fit(recorder, ChunkStream(np.arange(25), 0, 2, 5), ckpt_path=checkpoint, weights_only=True)
    return recorder.seen


@pytest.mark.filterwarnings("ignore")
def test_training_goes_on_from_any_step(tmp_path: Path) -> None:
    whole = train(tmp_path)
    assert whole == [(0, 0, True), (1, 5, False), (2, 10, False)] * 2
    for step in range(1, 6):
        assert train(tmp_path / "again", tmp_path / f"step={step}.ckpt") == whole[step:]
