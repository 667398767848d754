"""The result of the run that a checkpoint lies in, to which an evaluation adds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hornn.result import NAME, read_result
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
