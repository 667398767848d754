"""Every test here holds a GPU against the CPU, in fp32: skipped where there is no GPU.

`pytest -m gpu` runs them all in some minutes, with or without a C++ compiler.
"""

import csv
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import torch

Curve = Callable[..., list[tuple[float, float, float]]]


@pytest.fixture(autouse=True)
def exact_products() -> Generator[None]:
    """A GPU's products in fp32 itself, not in TF32, which has ten bits of its fraction."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture
def curve(command: Callable[..., Any], small: list[str], tmp_path: Path) -> Curve:
    """`curve("name", "trainer=gpu", ...)` trains in the folder `name`; the numbers of each epoch.

    These are training loss, validation loss and mean norm of the gradients.
    """

    def train(name: str, *words: str) -> list[tuple[float, float, float]]:
        exact = ("network.precision=fp32", "network.backend=eager")
        given = {word.split("=")[0] for word in words}
        others = [word for word in (*small, *exact) if word.split("=")[0] not in given]
        done = command("train", *others, f"run_dir={tmp_path / name}", *words)
        assert done.code == 0, done.err
        return numbers_of(tmp_path / name)

    return train


def numbers_of(run: Path) -> list[tuple[float, float, float]]:
    """What `Curve` gives, of a finished run."""
    with (run / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [(float(row["train_nll"]), float(row["valid_nll"]), float(row["grad_norm"])) for row in rows]
