"""The result of the run that a checkpoint lies in, to which an evaluation adds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from hornn.result import NAME, read_result, require_writable, write_result
from hornn.run.identity import BEST


def result_beside(card: Mapping[str, Any], checkpoint: Path) -> dict[str, Any]:
    """The result of the run that a checkpoint lies in. ValueError where there is none or it is of another run."""
    path = checkpoint.parent / NAME
    result = read_result(checkpoint.parent)
    if result is None:
        raise ValueError(
            f"record=true adds to {path}, which cannot be read: give the best.ckpt of a finished run"
        )
    same = all(result.get(key) == card.get(key) for key in ("name", "seed"))
    if result.get("status") != "completed" or not same or checkpoint.name != BEST:
        raise ValueError(
            f"{path} is not the result of the finished run of {checkpoint}: give the best.ckpt beside it"
        )
    return result


def to_record(card: Mapping[str, Any], checkpoint: Path) -> dict[str, Any]:
    """The same, where it can be written again. OSError where it cannot."""
    result = result_beside(card, checkpoint)
    require_writable(checkpoint.parent / NAME)
    return result


def record(checkpoint: Path, result: dict[str, Any], console: Console) -> None:
    """Write the result of the run that a checkpoint lies in, and say so."""
    write_result(checkpoint.parent, result)
    console.print(f"added to {checkpoint.parent / NAME}", markup=False)
