"""How Lightning writes and reads checkpoints here: whole or not at all, and without running code from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.plugins.io import CheckpointIO

from hornn.checkpoint import read_checkpoint, write_checkpoint


class AtomicCheckpointIO(CheckpointIO):
    """`hornn.checkpoint` as a plugin of the trainer; `card` goes into each checkpoint."""

    def __init__(self, card: Mapping[str, Any]) -> None:
        self.card = card

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        # a user's ModelCheckpoint has a folder of its own
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_checkpoint(checkpoint, Path(path), self.card)

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: Any = None
    ) -> dict[str, Any]:
        return read_checkpoint(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)
