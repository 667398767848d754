"""Two processes that share the columns train as one process with all of them."""

import csv
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_two_ranks_of_ten_columns_learn_as_one_process_of_twenty(tmp_path: Path) -> None:
    draw = random.Random(0)
    for split, lines in {"train": 257, "valid": 31, "test": 33}.items():
        words = [
            " ".join(draw.choice("abcdefgh") * draw.randint(1, 3) for _ in range(9)) for _ in range(lines)
        ]
        (tmp_path / f"{split}.txt").write_text("\n".join(words) + "\n")

    def curve(name: str, *overrides: str) -> list[dict[str, float]]:
        command = [
            *(sys.executable, "src/train.py", "data=files", "model.hidden_size=16", "trainer.max_epochs=3"),
            *(f"data.{split}={tmp_path / split}.txt" for split in ("train", "valid", "test")),
            *(f"data.cache_dir={tmp_path / 'cache'}", "data.batch_size=20", "data.seq_len=7", "logger=csv"),
            *("network.precision=fp32", "checkpoint_every=0", f"run_dir={tmp_path / name}", *overrides),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with (tmp_path / name / "metrics.csv").open() as file:
            return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]

    alone = curve("alone")
    shared = curve("shared", "trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2")
    assert len(alone) == len(shared) == 3
    for one, two in zip(alone, shared, strict=True):
        assert one["step"] == two["step"]
        for key in ("train_nll", "valid_nll", "grad_norm"):
            assert two[key] == pytest.approx(one[key], rel=2e-5), key
