"""One training on the tiny corpus, which several files of tests look at."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from speech.tiny import write_corpus


class Run(NamedTuple):
    """A finished run: what it printed, its folder, and the folder that the corpus `tiny` lies in, with the cache."""

    out: str
    folder: Path
    root: Path

    @property
    def checkpoint(self) -> str:
        return f"checkpoint={self.folder / 'best.ckpt'}"

    @property
    def places(self) -> list[str]:
        return [f"data.root={self.root}", f"data.cache_dir={self.root / 'cache'}"]


@pytest.fixture(scope="session")
def run(command: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """From waveforms to word errors by one command."""
    root = tmp_path_factory.mktemp("speech")
    write_corpus(root / "tiny")
    found = Run("", root / "run", root)
    small = ["model.hidden_size=16", "data.batch_size=4", "optimizer.lr=0.01", "trainer.max_epochs=20"]
    quiet = ["logger=csv", "trainer.enable_progress_bar=false", f"run_dir={found.folder}"]
    done = command("train", "experiment=hornn_acoustic/an4", "data.name=tiny", *found.places, *small, *quiet)
    assert done.code == 0, done.err
    return found._replace(out=done.out)
