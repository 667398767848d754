from collections.abc import Callable
from pathlib import Path

import pytest

from hornn.data.files import build_data
from hornn.data.text import TextData


@pytest.fixture
def own_text(tmp_path: Path) -> Callable[..., TextData]:
    """A text of small files, ready for use; further keys go to `hornn.data.files.build_data`."""

    def build(train: str = "a b a c\n" * 20, valid: str = "a b\n", test: str = "b d\n", **keys) -> TextData:
        texts = {"train": train, "valid": valid, "test": test}
        for split, text in texts.items():
            (tmp_path / f"{split}.txt").write_text(text, "utf-8")
        sizes = {"batch_size": 2, "seq_len": 3, "eval_batch_size": 1} | keys
        data = build_data(
            root="unused",
            cache_dir=str(tmp_path / "cache"),
            **{split: str(tmp_path / f"{split}.txt") for split in texts},
            **sizes,
        )
        data.prepare_data()
        data.setup()
        return data

    return build
