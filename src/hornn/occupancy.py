"""The folder of a run: held by one process at a time, and never emptied of a finished run unasked."""

import fcntl
from pathlib import Path
from typing import Any

from hornn.checkpoint import CARD, read_checkpoint
from hornn.identity import BEST, CONFIG, LAST
from hornn.result import read_result


def lock_run(run_dir: Path) -> Any:
    """Make the run's folder and hold its lock until the process ends, however it ends."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        lock = (run_dir / ".lock").open("w")
    except OSError as error:
        raise OSError(f"run_dir {run_dir} is not writable ({error.strerror}): give run_dir=FOLDER") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(
            f"another process is working on {run_dir}: wait for it, or give another run_dir"
        ) from error
    return lock


def find_unfinished(run_dir: Path, digest: str, seed: int, overwrite: bool) -> Path | None:
    """The checkpoint to continue from, None for a fresh start.

    Raises ValueError where the folder holds a finished run, or a run of another config or seed.
    """
    if overwrite:
        return None
    if result := read_result(run_dir):
        score = f" at test perplexity {result['test_ppl']:.2f}" if result.get("test_ppl") else ""
        raise ValueError(f"{run_dir} holds a run that {result['status']}{score}: overwrite=true replaces it")
    if not (run_dir / LAST).exists():
        return None
    card = read_checkpoint(run_dir / LAST)[CARD]
    if (card["config_hash"], card["seed"]) != (digest, seed):
        raise ValueError(
            f"{run_dir} holds an unfinished run of config ({card['config_hash']}, seed {card['seed']}); "
            f"this is {digest}, seed {seed}: give another run_dir, or overwrite=true to replace it"
        )
    return run_dir / LAST


def remove_run(run_dir: Path) -> None:
    """Remove what an earlier run left; files that are not a run's stay."""
    for name in ("result.json", "metrics.csv", BEST, LAST, CONFIG):
        (run_dir / name).unlink(missing_ok=True)
