"""The search of constants that the papers leave open, by the validation score alone.

A trial is an ordinary run in a process of its own and in the folder that its config names, so that it resumes, and is
not repeated once it is done. The study is a journal of trials below outputs/studies/.
"""

import hashlib
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.text import Text

from hornn.checks import require_file_name
from hornn.command_line.ending import same_command
from hornn.places import as_typed
from hornn.recipe import flatten
from hornn.reporting.grid_rows import as_text
from hornn.reporting.run_numbers import known_name
from hornn.reporting.scores import key_of
from hornn.reporting.studies import SUMMARY, show_score
from hornn.run.code import own_source
from hornn.run.composed import as_dict
from hornn.run.identity import identify, without
from hornn.sweep.expand import ROW, check_folder, compose_jobs, keys_of, options_of
from hornn.sweep.gpus import find_pool
from hornn.sweep.job import Job
from hornn.sweep.launcher import threads_each
from hornn.sweep.outcome import CutOff, changed_code
from hornn.sweep.progress import duration
from hornn.sweep.record import RECORDINGS, Record
from hornn.sweep.run_state import claim, result_of
from hornn.sweep.search_rules import check_constant, check_launcher, check_numbers, check_run
from hornn.sweep.space import constants, distribution, holds, in_words, leaves
from hornn.sweep.study import (
    METRIC,
    POSITION,
    REASON,
    Batch,
    best,
    build_pruner,
    counted,
    importance,
    load_optuna,
    metric_of,
    open_study,
    read_score,
)
from hornn.sweep.trials import Attempt, Trials
from hornn.writing import write_atomically

FOLDER = Path("outputs", "studies")
JOURNAL = "journal.log"
BATCH = 4  # that a search is not named after
PRUNING = {"trials": 5, "epoch": 3}  # likewise
# Keys of the search beside the keys of its runs.
OWN = ("trials", "jobs", "batch", "study", "pruning", "space")

console = Console()


def search(cfg: DictConfig, program: Path) -> None:
    """Run trials until the study has `cfg.trials` of them, then print the best constants as a command line.

    cfg: conf/tune.yaml with the config of a run; program: the script that trains, unless hydra.launcher.program
    names one. A trial whose training diverges counts as failed. Raises ValueError for a search that cannot be, and
    where a trial fails in another way, which is no fault of its constants.
    """
    optuna = load_optuna()
    runs = Runs(cfg, program)
    distributions = {key: distribution(optuna, key, values) for key, values in runs.space.items()}
    check_numbers(cfg)
    if isinstance(cfg.study, bool):
        raise ValueError(f"study must be a name, got {cfg.study}")
    name = str(cfg.study or runs.name)
    require_file_name("study", name)
    if f"{name}.json" == SUMMARY or name == RECORDINGS:
        raise ValueError(f"study={name} is the name of a file of the program's own: give another one")
    folder = FOLDER / name
    lock = claim(folder)
    if lock is None:
        raise ValueError(f"another process is searching in {folder}: wait for it, or give another study=NAME")
    study = open_study(optuna, folder / JOURNAL, runs.identity)
    pruner = build_pruner(optuna, cfg.pruning)
    announce(f"{name}: {len(counted(study))} of {cfg.trials} trials", runs)
    teller = Teller(optuna, study, runs, distributions, folder)
    while missing := [position for position in range(cfg.trials) if position not in counted(study)]:
        begin = missing[0] // cfg.batch * cfg.batch
        earlier = [trial for position, trial in counted(study).items() if position < begin]
        batch = Batch(optuna, earlier, pruner)
        attempts = []
        for position in (position for position in missing if position < begin + cfg.batch):
            params, row = batch.draw(distributions, cfg.seed, position), f"trial {position + 1}"
            title = f"{row} of {cfg.trials}"
            attempts.append(Attempt(position, params, runs.job(constants(params, distributions), row), title))
        with console.status(name) as status:
            trials = Trials(
                attempts,
                runs.command,
                Record(name, folder),
                batch.pruned_at,
                teller.conclude,
                status.update,
                cfg.jobs,
                runs.pool,
                threads_each(cfg.jobs),
            )
            trials.look_up()
            if not trials.fault:
                trials.run()
        trials.pass_on()
        if trials.fault:
            raise_fault(trials.fault)
    show_best(study, runs)
    lock.close()


class Runs:
    """What the trials have in common: the words of their command lines, their GPUs, and the space to search.

    Raises ValueError for settings under which no search can be, and for a constant to search, given on the command
    line, that the runs do not have.
    """

    def __init__(self, cfg: DictConfig, program: Path) -> None:
        asked = HydraConfig.get()
        own = list(asked.overrides.hydra)
        check_launcher(own)
        parsed = OverridesParser.create().parse_overrides(list(asked.overrides.task))
        keys = [key for override in parsed for key in keys_of(override)]
        script = Path(asked.launcher.get("program") or program)
        self.pool = find_pool(asked.launcher.get("gpus", "auto"), asked.launcher.get("per_gpu", 1))
        self.command = [sys.executable, str(script.absolute())]
        self.words = [
            str(each.input_line) for each in parsed if str(each.key_or_group).partition(".")[0] not in OWN
        ]
        self.options = options_of(asked)
        self.loader = GlobalHydra.instance().config_loader()
        self.master = compose("config", [*own, *self.words], return_hydra_config=True)
        if not isinstance(cfg.space, DictConfig):
            raise ValueError(f"space must hold the constants to search with their ranges, got {cfg.space}")
        config = as_dict(
            OmegaConf.masked_copy(self.master, [str(key) for key in self.master if key != "hydra"])
        )
        choices = self.master.hydra.runtime.choices
        check_run(config, choices)
        identity = identify(choices, config)
        known = flatten(identity.config)
        self.space: dict[str, Any] = {}
        self.left_out: list[str] = []
        for key, values in leaves(OmegaConf.to_container(cfg.space, resolve=True)):  # type: ignore[arg-type]
            if key in keys:
                self.left_out.append(f"{key} (set)")
            elif key in known:
                check_constant(key)
                self.space[key] = values
            elif any(f"{given}.".startswith(f"space.{key}.") for given in keys):
                raise ValueError(f"space.{key}: these runs have no {key}; --cfg job shows what they have")
            else:
                self.left_out.append(f"{key} (not in these runs)")
        if not self.space:
            raise ValueError(f"nothing is left to search: {', '.join(self.left_out) or 'the space is empty'}")
        search = {
            "choices": identity.choices,
            "config": without(identity.config, self.space),
            "seed": cfg.seed,
            "space": self.space,
        }
        if cfg.batch != BATCH:
            search["batch"] = cfg.batch
        if cfg.pruning != PRUNING:
            search["pruning"] = cfg.pruning and OmegaConf.to_container(cfg.pruning)
        if own_source(identity.code):  # an edited cell is searched anew
            search["code"] = dict(identity.code)
        self.identity = hashlib.sha256(json.dumps(search, sort_keys=True).encode()).hexdigest()[:10]
        self.own = {key: known[key] for key in self.space}  # what the runs have without a search
        self.name = f"{choices['model']}-{choices['data']}-{self.identity}".replace("/", "_")

    def settings(self, found: Mapping[str, Any]) -> list[str]:
        """The words of the command line of the run with these constants."""
        return [*self.words, *(f"{key}={as_text(value)}" for key, value in found.items())]

    def job(self, found: Mapping[str, Any], row: str) -> Job:
        words = [*self.settings(found), f"{ROW}'{row}'"]
        (job,) = compose_jobs(self.loader, self.master, [words], self.options)
        check_folder(job)
        refuse_other_code(job)
        job.gpus = self.pool.wanted_by(job.config)
        return job


def refuse_other_code(job: Job) -> None:
    """Raise ValueError where code of the user's own has changed since a trial finished."""
    if own_source(job.identity.code) and (changed := changed_code(job)):
        raise ValueError(
            f"{job.run_dir} holds a run of other code ({changed}): move it away, or give another seed=, which draws "
            "other constants"
        )


class Teller:
    """Tells the study of each trial that has ended, a person too, and keeps the summary for the report."""

    def __init__(
        self, optuna: Any, study: Any, runs: Runs, distributions: Mapping[str, Any], folder: Path
    ) -> None:
        self.optuna, self.study, self.runs, self.folder = optuna, study, runs, folder
        self.distributions = distributions
        self.summarize()

    def conclude(self, attempt: Attempt) -> None:
        job, states = attempt.job, self.optuna.trial.TrialState
        drawn = constants(attempt.params, self.distributions)
        found = "  ".join(f"{key}={as_text(value)}" for key, value in drawn.items())
        took = "" if job.seconds is None else f"  ({duration(job.seconds)})"
        if attempt.pruned_at:
            self.add(attempt, states.PRUNED, attempt.scores[: attempt.pruned_at])
            say(f"{attempt.title}    pruned    {found}{took}: epoch {attempt.pruned_at}", "dim")
        elif job.status == "done" and job.valid_score is not None:
            result = result_of(job.run_dir, job.name, job.seed) or {}
            earlier, metric = best(self.study), key_of(result, "valid")
            mark = "*" if earlier is None or job.valid_score < earlier.value else " "
            self.add(attempt, states.COMPLETE, attempt.scores, job.valid_score, {METRIC: metric})
            say(f"{attempt.title}  {score_text(job.valid_score, metric):>8} {mark}  {found}{took}")
        else:
            reason = job.error or "no finite validation score"
            self.add(attempt, states.FAIL, attempt.scores, said={REASON: reason})
            say(f"{attempt.title}    failed    {found}{took}: {reason}", "red")
        self.summarize()

    def add(
        self,
        attempt: Attempt,
        state: Any,
        scores: Sequence[float],
        value: float | None = None,
        said: Mapping[str, str] | None = None,
    ) -> None:
        self.study.add_trial(
            self.optuna.trial.create_trial(
                state=state,
                value=value,
                params=attempt.params,
                distributions=self.distributions,
                intermediate_values=dict(enumerate(scores, start=1)),
                user_attrs={POSITION: attempt.position, **(said or {})},
            )
        )

    def summarize(self) -> None:
        """Write what the report shows of the study, which it reads without optuna."""
        found, metric = best(self.study), metric_of(self.study)
        summary = {
            "study": self.folder.name,
            "command": command_of(self.runs, found) if found else None,
            "metric": metric,
            "importance": importance(self.optuna, self.study),
            "trials": [
                {
                    "trial": position + 1,
                    "state": trial.state.name.lower(),
                    metric: read_score(trial.value, metric) if trial.state.name == "COMPLETE" else None,
                    "constants": constants(trial.params, trial.distributions),
                    "epochs": len(trial.intermediate_values),
                    "reason": trial.user_attrs.get(REASON),
                }
                for position, trial in counted(self.study).items()
            ],
        }
        write_atomically(self.folder / SUMMARY, json.dumps(summary, indent=1) + "\n")


def score_text(score: float, metric: str) -> str:
    return show_score(read_score(score, metric), metric)


def raise_fault(attempt: Attempt) -> None:
    """Raise CutOff for a trial that was cut off, as by trainer.max_time, and ValueError for one that failed, and not by
    diverging, with the end of its log above."""
    if attempt.job.cut_off:
        raise CutOff(f"{attempt.title} was cut off. {same_command().capitalize()} continues it")
    for line in attempt.last_lines:
        say(f"    {line}", "dim")
    reason = attempt.job.error or "its process was terminated"
    raise ValueError(
        f"{attempt.title} failed, and not by diverging: {reason}; the same command tries it again"
    )


def announce(title: str, runs: Runs) -> None:
    say(title, "bold")
    places = [f"{key} {in_words(values)}" for key, values in runs.space.items()]
    indented = "\n            "
    say(f"  searched: {indented.join(places)}")
    if runs.left_out:
        say(f"  left out: {', '.join(runs.left_out)}")
    for key, values in runs.space.items():
        if not holds(values, runs.own[key]):
            say(
                f"  warning: {key}={as_text(runs.own[key])}, as these runs have it, lies outside: no trial has it; "
                f"space.{key} sets the place of the search",
                "yellow",
            )


def show_best(study: Any, runs: Runs) -> None:
    """Print the command that repeats the best trial. Raises ValueError where no trial was completed."""
    found = best(study)
    if found is None:
        raise ValueError("no trial was completed: what is said of each above tells why")
    metric = metric_of(study)
    score = f"{score_text(found.value, metric)} ({known_name(metric)})"
    say(f"best: {score}, by which alone it was chosen:", "bold")
    say(command_of(runs, found))


def command_of(runs: Runs, trial: Any) -> str:
    """The command that repeats a trial."""
    words = [*runs.options, *runs.settings(constants(trial.params, trial.distributions))]
    return as_typed(f"python src/train.py {shlex.join(words)}")


def say(text: str, style: str = "") -> None:
    console.print(Text(text, style), soft_wrap=True)
