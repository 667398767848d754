"""What a run leaves that no fault may change, and how two runs are held against each other."""

import csv
from pathlib import Path
from typing import Any

import torch

from commands.outcomes import result_of

TIMED = ("seconds", "tokens_per_second")
FIGURES = ("status", "name", "seed", "epochs", "best_epoch", "valid_ppl", "test_ppl", "num_parameters")


def figures(run_dir: Path) -> dict[str, Any]:
    result = result_of(run_dir)
    epochs = [{key: value for key, value in row.items() if key not in TIMED} for row in result["metrics"]]
    return {**{key: result[key] for key in FIGURES}, "metrics": epochs}


def records(run_dir: Path) -> list[dict[str, str]]:
    with (run_dir / "metrics.csv").open() as file:
        return [{k: v for k, v in row.items() if k not in TIMED} for row in csv.DictReader(file)]


def assert_same_run(one: Path, other: Path) -> None:
    """Figures and weights are equal to the last bit, and no writer has left anything beside them."""
    assert figures(one) == figures(other)
    assert records(one) == records(other)
    for name in ("best.ckpt", "last.ckpt"):
        weights = [torch.load(folder / name, weights_only=True)["state_dict"] for folder in (one, other)]
        assert weights[0].keys() == weights[1].keys()
        assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0]), name
    assert left_behind(other) == []


def left_behind(folder: Path) -> list[str]:
    """Temporary files of writers that were killed."""
    return [path.name for path in folder.glob(".*") if path.name not in (".lock", ".claim")]
