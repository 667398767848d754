"""A small corpus with models of counts and a network trained on it, and the commands that use them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from outcome import Command

KN = ["model=kn", "model.order=3", "model.fallback_discounts=[0.5,1,1.5]"]
QUIET = ["logger=csv", "trainer.enable_progress_bar=false"]


class Folder:
    """A small corpus with `kn`, `kn_cache` and `rnn` trained on it, and the three commands."""

    def __init__(self, path: Path, command: Command) -> None:
        self.path, self.run = path, command
        draw = np.random.default_rng(0)
        for split, lines in {"train": 120, "valid": 30, "test": 30}.items():
            topic = np.repeat(draw.integers(2, size=lines), 1)
            text = [" ".join(draw.choice(list("abcd" if t else "defg"), size=8)) for t in topic]
            (path / f"{split}.txt").write_text("\n".join(text) + "\n")
        paths = [f"data.{split}={path / split}.txt" for split in ("train", "valid", "test")]
        self.data = ["data=files", *paths, f"data.cache_dir={path / 'cache'}"]
        self.train("kn", *KN)
        self.train("kn_cache", *KN, "model=kn_cache", "model.lengths=[5,20]")
        rnn = [
            "model=rnn",
            "model.hidden_size=6",
            "data.batch_size=4",
            "data.seq_len=5",
            "trainer.max_steps=60",
        ]
        self.train("rnn=1", *rnn, "data.eval_batch_size=1")

    def train(self, name: str, *words: str) -> Any:
        done = self.run("train", *self.data, *QUIET, *words, f"run_dir={self.path / name}")
        assert done.code == 0, done.err
        return done

    def result(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / name / "result.json").read_text())
        return found

    def checkpoint(self, name: str) -> str:
        return str(self.path / name / "best.ckpt")

    def evaluate(self, *words: str) -> Any:
        return self.run("evaluate", f"data.cache_dir={self.path / 'cache'}", *words)

    def figures(self, *words: str) -> dict[str, Any]:
        done = self.evaluate(*words, f"result={self.path / 'figures.json'}")
        assert (done.code, done.err) == (0, "")
        found: dict[str, Any] = json.loads((self.path / "figures.json").read_text())
        assert f"{found['perplexity']:,.2f}" in done.out
        return found
