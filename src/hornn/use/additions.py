"""The result of the run that a checkpoint lies in, to which an evaluation adds."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from hornn.result import RESULT, read_result, write_result
from hornn.run.code import changed_since
from hornn.run.identity import BEST
from hornn.run.lock import lock_folder
from hornn.writing import require_writable

PATIENCE = 10.0  # seconds: another addition takes a moment, a training longer
SAME = ("status", "name", "seed", "finished")  # two results that agree in these keys are of one run
FOR_READING = "copy the run's folder, or leave out record= and sweep="  # where a run can only be read


def result_beside(scorer: Any, checkpoint: Path) -> dict[str, Any]:
    """The result of the run that the checkpoint of an opened model lies in.

    ValueError where there is none, where it is of another run, or where the user's own cell is another one by now.
    """
    path, card = checkpoint.parent / RESULT, scorer.card or {}
    result = read_result(checkpoint.parent)
    if result is None:
        raise ValueError(
            f"record=true adds to {path}, which cannot be read: give the best.ckpt of a finished run"
        )
    if result.get("status") != "completed" or not is_of(result, card) or checkpoint.name != BEST:
        raise ValueError(
            f"{path} is not the result of the finished run of {checkpoint}: give the best.ckpt beside it"
        )
    network = getattr(scorer, "network", None)
    if network is not None and (changed := changed_since(card, network.cells[0])):
        raise ValueError(f"{path} is of other code ({changed}): bring that code back, or train anew")
    return result


def is_of(result: Mapping[str, Any], card: Mapping[str, Any]) -> bool:
    """Whether a result is of the run that a checkpoint's card names."""
    return all(result.get(key) == card.get(key) for key in ("name", "seed"))


def to_record(scorer: Any, checkpoint: Path) -> dict[str, Any]:
    """As `result_beside`. OSError where the result cannot be written again."""
    result = result_beside(scorer, checkpoint)
    require_writable(checkpoint.parent / RESULT, FOR_READING)
    return result


def record(checkpoint: Path, result: Mapping[str, Any], part: Mapping[str, Any], console: Console) -> None:
    """Add `part` to the result that is there by now, beside what others have added meanwhile, and say so.

    result: what was there when the measurement began. Raises ValueError where it is another run's by now, Busy where a
    process works on the run.
    """
    path = checkpoint.parent / RESULT
    lock = lock_folder(checkpoint.parent, PATIENCE)
    try:
        now = read_result(checkpoint.parent)
        if now is None or any(now.get(key) != result.get(key) for key in SAME):
            raise ValueError(
                f"{path} is no longer the result of the run that was measured, so {', '.join(part)} was not added: "
                "give the same command again"
            )
        written = path.stat()
        write_result(checkpoint.parent, {**now, **part})
        # as old as it was: a sweep tells by its time that a run was trained anew
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    finally:
        lock.close()
    console.print(f"added to {path}", markup=False)
