"""Models that many tests use, and change in a copy alone."""

from pathlib import Path
from typing import Any

import pytest

from small_text import write_text


@pytest.fixture(scope="session")
def folder(command: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained network, counts, their ARPA file, and the text that they learned from."""
    folder = tmp_path_factory.mktemp("models")
    small = [*write_text(folder), "logger=csv", "trainer.max_epochs=1", "trainer.enable_progress_bar=false"]
    models = {
        "network": ["model=gru", "model.hidden_size=6"],
        "counts": ["model=kn", "model.fallback_discounts=[0.5,1,1.5]"],
    }
    for name, words in models.items():
        done = command("train", *small, *words, f"run_dir={folder / name}")
        assert done.code == 0, done.err
    where = f"data.cache_dir={folder / 'cache'}"
    arpa = command(
        "evaluate", f"checkpoint={folder / 'counts/best.ckpt'}", f"arpa={folder / 'kn.arpa'}", where
    )
    assert arpa.code == 0, arpa.err
    return folder
