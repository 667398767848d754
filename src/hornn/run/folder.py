"""The folder of a run: held by one process at a time, and never emptied of a finished run unasked."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import yaml
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from hornn.checkpoint import CARD, read_checkpoint
from hornn.command_line.ending import BEGUN, IN_RUN
from hornn.data.base import Data
from hornn.recipe import load
from hornn.result import content_of, read_result, score_of, write_result
from hornn.run.announce import announce, conclude
from hornn.run.code import CODE, other_code
from hornn.run.epochs import METRICS
from hornn.run.identity import (
    BEST,
    CONFIG,
    FILES,
    INIT_FROM,
    LAST,
    SNAPSHOTS,
    Identity,
    differing,
    other_run,
    without,
)
from hornn.run.keeper import PAYLOAD
from hornn.run.lock import lock_folder, require_held
from hornn.run.loggers import RunLogger, end_logging, explain_lost_wandb
from hornn.run.provenance import versions
from hornn.writing import write_atomically

# What helps where a folder holds another run.
REPLACE = "give another run_dir, or overwrite=true to replace it"


class OpenRun:
    """A run whose folder this process holds.

    resume: the checkpoint that it continues from, None for a fresh start. loggers: where it logs. main: whether this
    is the first of its processes, which alone writes.
    """

    def __init__(
        self,
        identity: Identity,
        data: Data,
        resume: Path | None,
        loggers: list[Logger],
        lock: IO[str] | None,
    ) -> None:
        self.identity, self.data, self.resume, self.loggers, self.lock = identity, data, resume, loggers, lock
        self.main = lock is not None
        self.dir = identity.folder
        self.finished = False

    def announce(self, size: str, notes: Sequence[str]) -> None:
        """Say what is about to run."""
        if self.main:
            model = self.identity.choices["model"]
            announce(self.dir, model, size, self.data, notes, bool(self.resume))

    def begin(self, num_parameters: int, config: Mapping[str, Any], program: Mapping[str, Any]) -> None:
        """Remove what an earlier run left, unless it is continued, and put on record who this one is.

        program: of this start, as `hornn.run.provenance.Starts` has it.

        To be called when nothing can be refused any more. Files of other names stay.
        """
        BEGUN.set()
        if not self.main:
            return
        for name in (LAST, *FILES, SNAPSHOTS):  # first what a run that was cut here would go on from
            for temporary in self.dir.glob(f".{name}.*"):  # of a writer that was killed
                temporary.unlink()
            if not self.resume:
                for file in self.dir.glob(name):
                    file.unlink()
        put_on_record(self.identity)
        for logger in self.loggers:
            logger.log_hyperparams(
                {**self.described(config, num_parameters), **program, "versions": versions()}
            )

    def described(self, config: Mapping[str, Any], num_parameters: int) -> dict[str, Any]:
        """The run as a logger is told of it: all that was given, nested, and who the run is."""
        known = self.identity.to_dict()
        given = without(config, ("model", "sweep"))
        return {
            **self.identity.settings(),
            **given,  # in full: also what decides no number
            "corpus": self.data.name,
            "choices": known["choices"],
            "run_name": known["name"],  # in W&B `name` is taken: W&B names its own run so
            "run_dir": str(self.dir),
            "num_parameters": num_parameters,
        }

    def require_held(self) -> None:
        """Raise OSError where the folder was moved or removed: what is written to its path may be another run's."""
        if self.lock is not None:
            require_held(self.lock, self.dir)

    def best_weights(self) -> dict[str, Any]:
        """The weights of the best epoch. ValueError where another run has put its own in their place."""
        best = read_checkpoint(self.dir / BEST)
        card = best[CARD]
        if (card.get("name"), card.get("seed")) != (self.identity.name, self.identity.seed):
            raise ValueError(
                f"{self.dir / BEST} is of another run, which wrote here meanwhile: overwrite=true trains this run again"
            )
        weights: dict[str, Any] = best["state_dict"]
        return weights

    def finish(self, figures: Mapping[str, Any], how: str) -> None:
        """Write the result of a run that came to its end, and say what came out."""
        self.finished = True
        self.require_held()
        if self.main:
            result = {"status": "completed", **self.identity.to_dict(), **figures}
            write_result(self.dir, result)
            for logger in self.loggers:
                if isinstance(logger, RunLogger):
                    logger.send_model(self.dir / BEST)
            conclude(self.dir, result, self.data.units, how, self.data.remarks())

    def fail(self, error: str, figures: Mapping[str, Any]) -> None:
        """Write the result of a run that diverged, and raise ValueError with what happened."""
        self.require_held()
        if self.main:
            write_result(
                self.dir, {"status": "diverged", **self.identity.to_dict(), "error": error, **figures}
            )
        raise ValueError(error)


@contextmanager
def open_run(
    identity: Identity,
    data: Data,
    open_loggers: Callable[..., list[Logger]],
    overwrite: bool = False,
    rank: int = 0,
) -> Iterator[OpenRun]:
    """Hold the run's folder from here on, and let it and the loggers go at the end, whatever that is.

    rank: which of the run's processes this is. The loggers go by it, too: by itself Lightning has it from the
    environment, where it may be that of one task of several with a run each.

    Raises Busy where another process has it, OSError where it cannot be written, ValueError where it holds a
    finished run, one of other choices, values or seed, or such files of no run.
    """
    rank_zero_only.rank = rank  # type: ignore[attr-defined]
    lock = lock_folder(identity.folder) if rank == 0 else None
    try:
        resume = None if overwrite else find_unfinished(identity, data)
        run = OpenRun(
            identity,
            data,
            resume,
            open_loggers(run_dir=identity.folder, identity=identity, resume=bool(resume)),
            lock,
        )
        try:
            yield run
        except ConnectionError as error:
            explain_lost_wandb(error)
            raise
        finally:
            end_logging(run.finished)
    finally:
        if lock is not None:
            lock.close()


def find_unfinished(identity: Identity, data: Data) -> Path | None:
    """The checkpoint to continue from, None for a fresh start. Errors: as in `open_run`."""
    folder = identity.folder
    if result := read_result(folder):
        test = score_of(result, "test")
        score = "" if test is None else f" at a test score of {data.units.show(test)} ({data.units.score})"
        held = f"{folder} holds a run that {result['status']}{score}"
        if other := other_run(result, identity):
            more = has_more_epochs(identity, result)
            go_on = f"continue_from={folder} with another run_dir goes on from it; or " if more else ""
            raise ValueError(f"{held}, and is another one ({other}): {go_on}{REPLACE}")
        if changed := other_code(result.get(CODE), identity.code):
            raise ValueError(
                f"{held}, by other code ({changed}): overwrite=true replaces it by a run of this code"
            )
        raise ValueError(f"{held}: overwrite=true replaces it")
    if not (folder / LAST).exists():
        require_own(identity)
        return None
    last = read_checkpoint(folder / LAST)
    try:
        require_same(identity, data, last[CARD])
        require_best(folder, last)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / LAST} lacks a part of a run ({error!r}): {REPLACE}") from error
    return folder / LAST


def has_more_epochs(identity: Identity, held: Mapping[str, Any]) -> bool:
    """Whether this is the run of a result with a larger trainer.max_epochs, which was what ended that run."""
    key, records = "trainer.max_epochs", held.get("metrics")
    if held["status"] != "completed" or not records or other_run(held, identity, (key,)):
        return False
    ended, asked = differing(held, identity.to_dict()).get(key, (None, None))
    more = type(ended) is type(asked) is int and (asked > ended or asked == -1)
    return more and records[-1].get("epoch") == ended


def require_same(identity: Identity, data: Data, card: Mapping[str, Any]) -> None:
    """Raise ValueError for the card of an unfinished run that is another one, or on another text."""
    folder = identity.folder
    if (card["name"], card["seed"]) != (identity.name, identity.seed):
        other = other_run(card, identity) or "their names differ"
        raise ValueError(
            f"{folder} holds the unfinished run {card['name']}, which is another one ({other}): {REPLACE}"
        )
    anew = "overwrite=true starts anew by this code"
    require_same_code(f"{folder} holds an unfinished run", card, identity, anew)
    require_same_content(f"{folder} holds an unfinished run", card, data, REPLACE)


def require_same_content(what: str, card: Mapping[str, Any], data: Data, remedy: str) -> None:
    """Raise ValueError for a checkpoint of a run on other content than these data have."""
    then, now = map(content_of, (card["data"], data.describe()))
    if then != now:
        raise ValueError(f"{what} on another text ({then}, now {now}): {remedy}")


def require_same_code(what: str, card: Mapping[str, Any], identity: Identity, anew: str) -> None:
    """Raise ValueError for a checkpoint where a class of the user's own, or its source, is another one by now.

    Of this package's cells the commit is on record: the program is edited while runs wait, so a line tells of it.
    """
    if changed := other_code(card.get(CODE), identity.code, own=True):
        raise ValueError(f"{what} of other code ({changed}): {anew}, or put the old code back to continue")


def require_best(folder: Path, last: Mapping[str, Any]) -> None:
    """Raise ValueError unless best.ckpt is of the run that last.ckpt goes on with: its weights are scored in the end.

    A run that was cut off between the two has a newer one, whose epoch is run again.
    """
    saved = last.get(PAYLOAD)
    best = saved.get("best") if isinstance(saved, dict) else None
    if not isinstance(best, dict):
        return  # no epoch has ended, or the fit refuses it
    path = folder / BEST
    held = read_checkpoint(path) if path.is_file() else {}
    alike = all(held.get(CARD, {}).get(key) == last[CARD].get(key) for key in ("name", "seed", "data"))
    step = held.get("global_step")
    if not alike or not isinstance(step, int) or step < best.get("step", 0):
        raise ValueError(
            f"{path} is {'of another run' if held else 'missing'}, and {LAST} says that epoch {best.get('epoch')} is "
            f"the best: put it back, {REPLACE}"
        )


def require_own(identity: Identity) -> None:
    """Raise ValueError where files that a run replaces are in its folder, and no config.yaml says that they are its."""
    folder = identity.folder
    found = [name for name in (CONFIG, METRICS, BEST) if (folder / name).exists()]
    found += sorted(path.name for path in folder.glob(SNAPSHOTS))
    if found and not is_put_on_record(identity):
        raise ValueError(
            f"{folder} holds {', '.join(found)} that are not of this run ({identity.name}, seed {identity.seed}): "
            "give another run_dir, or overwrite=true to replace them"
        )


def require_elsewhere(identity: Identity, starts: Iterable[str]) -> None:
    """Raise ValueError where weights that a run starts from lie in its own folder, whose files it replaces."""
    for path in starts:
        if Path(path).resolve().parent == identity.folder.resolve():
            raise ValueError(
                f"{INIT_FROM}={path} lies in the folder that this run writes to: give another run_dir, or a checkpoint "
                "of another folder"
            )


def require_launched(identity: Identity) -> None:
    """Raise ValueError where the launcher of a sweep meant another run than the one that its words make by now."""
    meant = os.environ.get(IN_RUN, identity.name)
    if meant != identity.name:
        raise ValueError(
            f"the sweep began this job as run {meant}, and its words now make run {identity.name}: the sweep file, a "
            "config or a text that they name was changed meanwhile; start the sweep again"
        )


def put_on_record(identity: Identity) -> None:
    """Write config.yaml, by which the files of the folder are known as this run's from here on."""
    known = identity.to_dict()
    write_atomically(identity.folder / CONFIG, yaml.safe_dump(known, sort_keys=False, allow_unicode=True))


def is_put_on_record(identity: Identity) -> bool:
    """Whether the folder's config.yaml is this run's."""
    try:
        known = load(identity.folder / CONFIG, yaml.SafeLoader)  # as it was written: 1e5 may be a name
    except (OSError, ValueError):
        return False
    return (known.get("name"), known.get("seed")) == (identity.name, identity.seed)
