"""A small corpus of one's own."""

import random
from pathlib import Path

# Overrides for two epochs of it.
SMALL = [
    "data.eval_batch_size=2",
    "model.hidden_size=6",
    "logger=csv",
    "trainer.enable_progress_bar=false",
    "trainer.max_epochs=2",
]


def write_text(folder: Path) -> list[str]:
    """Overrides for a small corpus, written to `folder`: 15 chunks of 5 x 4 tokens an epoch, the last one ragged."""
    draw = random.Random(0)
    for split, lines in {"train": 31, "valid": 9, "test": 9}.items():
        words = [" ".join(draw.choice("abcdefg") for _ in range(8)) for _ in range(lines)]
        (folder / f"{split}.txt").write_text("\n".join(words) + "\n")
    paths = [f"data.{split}={folder / split}.txt" for split in ("train", "valid", "test")]
    return [
        "data=files",
        *paths,
        f"data.cache_dir={folder / 'cache'}",
        "data.batch_size=4",
        "data.seq_len=5",
    ]
