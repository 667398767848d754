"""The study of a search: a journal of trials below outputs/studies/, which a later search continues."""

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEARCH = "search"  # the attribute of a study that says what is searched in which runs
REASON = "reason"  # the attribute of a trial that says why it failed


def load_optuna() -> Any:
    try:
        optuna: Any = importlib.import_module("optuna")
    except ModuleNotFoundError as error:
        raise ValueError(f"the search needs optuna ({error}): pip install -e '.[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def open_study(optuna: Any, path: Path, identity: str) -> Any:
    """The study in a journal, ready to go on: a trial that an ended search left at work is retired.

    It counts for nothing, so that the next trial draws its constants again and continues its run. Raises
    ValueError where the journal is damaged or of another search.
    """
    mend(path)
    states = optuna.trial.TrialState
    try:
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
        study = optuna.create_study(
            storage=storage, study_name="search", direction="minimize", load_if_exists=True
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): remove it; the runs are kept, and a new search finds what it repeats"
        ) from error
    if study.user_attrs.get(SEARCH, identity) != identity:
        raise ValueError(
            f"{path.parent} holds the search {study.user_attrs[SEARCH]}, of other runs or another space; this is "
            f"{identity}: give another study=NAME"
        )
    study.set_user_attr(SEARCH, identity)
    for trial in study.get_trials(states=(states.RUNNING,)):
        study.tell(trial.number, state=states.FAIL)
    return study


def mend(journal: Path) -> None:
    """Remove what a killed search, or a full disk, may have left: half a line, and the lock of its writer."""
    journal.with_name(f"{journal.name}.lock").unlink(missing_ok=True)
    if journal.exists():
        text = journal.read_bytes()
        os.truncate(journal, text.rfind(b"\n") + 1)


def build_sampler(optuna: Any, seed: int, number: int) -> Any:
    """Draws the constants of the trial after `number` others: the same ones, however often the search was started."""
    return optuna.samplers.TPESampler(seed=(1000 * seed + number) % 2**32)


def build_pruner(optuna: Any, pruning: Mapping[str, int] | None) -> Any:
    if pruning is None:
        return optuna.pruners.NopPruner()
    for key, value in pruning.items():
        if type(value) is not int or value < 1:
            raise ValueError(f"pruning.{key} must be a whole number, 1 or more, got {value!r}")
    return optuna.pruners.MedianPruner(pruning["trials"], pruning["epoch"])


def counted(study: Any) -> list[Any]:
    """The trials of which something came: a number, an early end, or a failure of their own."""
    ended = ("COMPLETE", "PRUNED")
    return [t for t in study.get_trials(deepcopy=False) if t.state.name in ended or REASON in t.user_attrs]


def best(study: Any) -> Any:
    """The completed trial of lowest validation perplexity, None before there is one."""
    completed = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    return min(completed, key=lambda trial: trial.value, default=None)
