"""The study of a search: a journal of trials below outputs/studies/, which a later search continues.

Trials are drawn in batches: each of a batch from the outcomes of the batches before and from its own number. So what
is drawn depends neither on how many trials are at work at a time nor on which ends first.
"""

import importlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hornn.checks import require_package, require_positive
from hornn.metrics import bits

SEARCH = "search"  # the attribute of a study that says what is searched in which runs
REASON = "reason"  # the attribute of a trial that says why it failed
METRIC = "metric"  # the attribute of a trial that says what its validation score is shown as: `valid_nll`
POSITION = "position"  # the attribute of a trial that says how many were drawn before it
ENOUGH = 4  # completed trials, from which on the importance of constants is told


def load_optuna() -> Any:
    require_package("optuna", "the search", "-e '.[tune]'")
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def open_study(optuna: Any, path: Path, identity: str) -> Any:
    """The study in a journal, ready to go on. It holds trials that have ended; one left at work is retired.

    Raises ValueError where the journal is damaged or of another search.
    """
    mend(path)
    states = optuna.trial.TrialState
    try:
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
        study = optuna.create_study(
            storage=storage, study_name="search", direction="minimize", load_if_exists=True
        )
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): remove it; the runs are kept, and a new search finds those that it repeats"
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
    """Remove what a killed search, or a full disk, may have left: half a line, and the lock of its writer.

    Raises ValueError for a file that is no journal.
    """
    if journal.exists():
        text = journal.read_bytes()
        if text.strip(b"\0") and not text.startswith(b'{"op_code"'):
            raise ValueError(f"{journal} is no journal of a search: move it away, or give another study=NAME")
        os.truncate(journal, text.rfind(b"\n") + 1)
    journal.with_name(f"{journal.name}.lock").unlink(missing_ok=True)


class Batch:
    """Draws the constants of the trials of one batch, and says which of these trials are worth no further epoch.

    earlier: the trials of the batches before, in their order. pruner: see `build_pruner`.
    """

    def __init__(self, optuna: Any, earlier: Sequence[Any], pruner: Any) -> None:
        self.optuna = optuna
        self.study = optuna.create_study(direction="minimize")
        self.study.add_trials(earlier)
        self.pruner = pruner

    def draw(self, distributions: Mapping[str, Any], seed: int, position: int) -> dict[str, Any]:
        self.study.sampler = self.optuna.samplers.TPESampler(seed=(1000 * seed + position) % 2**32)
        found: dict[str, Any] = self.study.ask(distributions).params
        return found

    def pruned_at(self, scores: Sequence[float]) -> int | None:
        """The first epoch after which a trial with these validation scores is to be ended; None: none."""
        for epoch in range(1, len(scores) + 1):
            values = dict(enumerate(scores[:epoch], start=1))
            trial = self.optuna.trial.create_trial(
                state=self.optuna.trial.TrialState.RUNNING, intermediate_values=values
            )
            if self.pruner.prune(self.study, trial):
                return epoch
        return None


def build_pruner(optuna: Any, pruning: Mapping[str, int] | None) -> Any:
    if pruning is None:
        return optuna.pruners.NopPruner()
    require_positive(**{f"pruning.{key}": value for key, value in pruning.items()})
    return optuna.pruners.MedianPruner(pruning["trials"], pruning["epoch"])


def counted(study: Any) -> dict[int, Any]:
    """Position -> trial, in order, for trials that left a number, an early end, or a failure of their own."""
    ended = ("COMPLETE", "PRUNED")
    trials = [t for t in study.get_trials(deepcopy=False) if t.state.name in ended or REASON in t.user_attrs]
    places = {trial.user_attrs.get(POSITION, index): trial for index, trial in enumerate(trials)}
    return dict(sorted(places.items()))


def best(study: Any) -> Any:
    """The completed trial of the lowest validation score, of equal ones the first; None before there is one."""
    completed = [trial for trial in counted(study).values() if trial.state.name == "COMPLETE"]
    return min(completed, key=lambda trial: trial.value, default=None)


def metric_of(study: Any) -> str:
    """The key under which a person reads the scores, as `valid_bpc`; perplexity as long as no trial has one."""
    return next(
        (t.user_attrs[METRIC] for t in counted(study).values() if METRIC in t.user_attrs), "valid_ppl"
    )


def read_score(score: float, metric: str) -> float:
    """A score of a trial, in nats or as a perplexity, as a person reads it: of characters in bits."""
    return bits(math.log(score)) if metric.endswith("_bpc") else score


def importance(optuna: Any, study: Any) -> dict[str, float]:
    """The share of each constant in what tells good trials from others, by PED-ANOVA; empty with too few trials."""
    fair = optuna.create_study(direction="minimize")
    fair.add_trials([trial for trial in counted(study).values() if trial.state.name == "COMPLETE"])
    if len(fair.trials) < ENOUGH or len({trial.value for trial in fair.trials}) < 2:
        return {}
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    shares = optuna.importance.get_param_importances(fair, evaluator=evaluator)
    return {key: float(share) for key, share in shares.items()}
