"""How far a run is that has no result yet: its epochs so far, and the time that it may still take, from its folder.

And the name of the file where its result is kept.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hornn.recipe import load
from hornn.run.epochs import METRICS, read_epochs
from hornn.run.identity import CONFIG, LAST
from hornn.run.lock import is_at_work

MINUTE, HOUR = 60.0, 3600.0
MOST_EPOCHS = 10**9


class RunSoFar(NamedTuple):
    """`records`: what its metrics.csv says of each epoch; `since`: seconds since the last one ended.

    `limit`: trainer.max_epochs, as its config.yaml says.
    """

    records: tuple[dict[str, float], ...] = ()
    since: float = 0.0
    at_work: bool = False
    limit: int | None = None

    def in_words(self) -> str:
        """`epoch 5 of 16, at most 12 min left`; empty before the first epoch has ended."""
        if not self.records:
            return ""
        epoch = self.records[-1].get("epoch", len(self.records))
        if not self.limit or self.limit < 0:
            return f"epoch {epoch:g}"
        said = f"epoch {epoch:g} of {self.limit}"
        lengths = [record["seconds"] for record in self.records if "seconds" in record]
        if not self.at_work or not lengths:
            return said
        left = max(sum(lengths) / len(lengths) * (self.limit - epoch) - self.since, 0.0)
        return f"{said}, at most {in_words(left)} left"


def in_words(seconds: float) -> str:
    if seconds >= 2 * HOUR:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / MINUTE:.0f} min" if seconds >= 2 * MINUTE else f"{seconds:.0f} s"


def read_run_so_far(folder: Path) -> RunSoFar:
    """What a run's folder says; a file that cannot be read says nothing."""
    at_work = is_at_work(folder)
    try:
        since = max(time.time() - (folder / METRICS).stat().st_mtime, 0.0)
    except OSError:
        return RunSoFar(at_work=at_work)
    return RunSoFar(tuple(read_epochs(folder)), since, at_work, read_limit(folder / CONFIG))


def has_begun(folder: Path) -> bool:
    """Whether a run has left something to go on from, or the scores of an epoch."""
    return (folder / LAST).exists() or bool(read_epochs(folder))


def read_limit(path: Path) -> int | None:
    """The number of epochs that a run's config.yaml allows; None where it does not say, or what cannot be meant."""
    try:
        config = load(path).get("config")
    except (OSError, ValueError):
        return None
    trainer = config.get("trainer") if isinstance(config, Mapping) else None
    limit = trainer.get("max_epochs") if isinstance(trainer, Mapping) else None
    return limit if isinstance(limit, int) and abs(limit) <= MOST_EPOCHS else None


def kept_name(row: str, seed: int) -> str:
    """The file of a result in the folder of its table."""
    return f"{row}-seed{seed}.json"
