"""The search of constants that the papers leave open, by validation perplexity alone.

A trial is an ordinary run in a process of its own and in the folder that its config names, so that it resumes, and is
not repeated once it is done. The study is a journal of trials below outputs/studies/.
"""

import csv
import hashlib
import importlib
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.text import Text

from hornn.identity import effective, plain
from hornn.sweep.compose import ROW, check_folder, compose_jobs, options_of
from hornn.sweep.folder import claim, result_of
from hornn.sweep.job import Job
from hornn.sweep.progress import duration
from hornn.sweep.record import Record
from hornn.sweep.workers import Workers

FOLDER = Path("outputs", "studies")
JOURNAL = "journal.log"
OWN = ("trials", "study", "pruning", "space")  # keys of the search beside those of its runs
SEARCH = "search"  # the attribute of a study that says what is searched in which runs
REASON = "reason"  # the attribute of a trial that says why it failed

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
    if cfg.trials < 1:
        raise ValueError(f"trials must be a whole number, 1 or more, got {cfg.trials}")
    name = cfg.study or runs.name
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"study must be letters, digits, '.', '_' and '-', got {name!r}")
    folder = FOLDER / name
    lock = claim(folder)
    if lock is None:
        raise ValueError(f"another process is searching in {folder}: wait for it, or give another study=NAME")
    study = open_study(optuna, folder / JOURNAL, runs.identity)
    study.pruner = build_pruner(optuna, cfg.pruning)
    announce(f"{name}: {len(counted(study))} of {cfg.trials} trials", runs)
    while (number := len(counted(study))) < cfg.trials:
        study.sampler = build_sampler(optuna, cfg.seed, number)
        trial = study.ask(distributions)
        row = f"trial {number + 1}"
        job = runs.job(constants(trial.params), row)
        attempt = Attempt(job, runs.command, Record(name, folder), trial, f"{row} of {cfg.trials}")
        with attempt.status:
            attempt.look_up()
            attempt.run()
        attempt.conclude(study)
    show_best(study, runs)
    lock.close()


def load_optuna() -> Any:
    try:
        optuna: Any = importlib.import_module("optuna")
    except ModuleNotFoundError as error:
        raise ValueError(f"the search needs optuna ({error}): pip install -e '.[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


# -- the space -----------------------------------------------------------------------------------------------


def leaves(space: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each constant, as its key in the config of a run, with where to search it; without those that are null."""
    for key, value in space.items():
        where = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and not {"low", "high"} & value.keys():
            yield from leaves(value, where)
        elif value is not None:
            yield where, value


def distribution(optuna: Any, key: str, values: Any) -> Any:
    """Where a constant is searched. Raises ValueError for what is neither a list of values nor a range."""
    kinds = optuna.distributions
    try:
        if isinstance(values, list) and values and not any(isinstance(v, list | dict) for v in values):
            return kinds.CategoricalDistribution(values)
        if isinstance(values, Mapping) and {"low", "high"} <= values.keys() <= {"low", "high", "log"}:
            low, high, log = values["low"], values["high"], values.get("log", False)
            if {type(low), type(high)} <= {int, float} and type(log) is bool:
                whole = type(low) is type(high) is int
                kind = kinds.IntDistribution if whole else kinds.FloatDistribution
                return kind(low, high, log=log)
    except ValueError as error:
        raise ValueError(f"space.{key}: {error}") from error
    raise ValueError(
        f"space.{key} must be a list of values, or {{low: NUMBER, high: NUMBER, log: true or false}}, got {values!r}"
    )


def constants(params: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a trial, to four digits: what a person would write, and a run that can be named again."""
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in params.items()
    }


def as_word(value: Any) -> str:
    """A constant as the command line has it."""
    return value if isinstance(value, str) else json.dumps(value)


# -- the runs ------------------------------------------------------------------------------------------------


class Runs:
    """What the trials have in common: the words of their command lines, and the space to search.

    Raises ValueError for settings under which no search can be, and for a constant to search, given on the command
    line, that the runs do not have.
    """

    def __init__(self, cfg: DictConfig, program: Path) -> None:
        asked = HydraConfig.get()
        own = list(asked.overrides.hydra)
        keys = {
            str(override.input_line): str(override.key_or_group)
            for override in OverridesParser.create().parse_overrides(list(asked.overrides.task))
        }
        self.script = str(Path(asked.launcher.get("program") or program).absolute())
        self.words = [word for word, key in keys.items() if key.partition(".")[0] not in OWN]
        self.options = options_of(asked)
        self.loader = GlobalHydra.instance().config_loader()
        self.master = compose("config", [*own, *self.words], return_hydra_config=True)
        config = plain(
            OmegaConf.masked_copy(self.master, [str(key) for key in self.master if key != "hydra"])
        )
        choices = self.master.hydra.runtime.choices
        check_run(config, choices)
        self.space: dict[str, Any] = {}
        self.left_out: list[str] = []
        for key, values in leaves(OmegaConf.to_container(cfg.space, resolve=True)):  # type: ignore[arg-type]
            if key in keys.values():
                self.left_out.append(f"{key} (set)")
            elif has(effective(config), key):
                self.space[key] = values
            elif any(given.startswith(f"space.{key}") for given in keys.values()):
                raise ValueError(f"space.{key}: these runs have no {key}; --cfg job shows what they have")
            else:
                self.left_out.append(f"{key} (not in these runs)")
        if not self.space:
            raise ValueError(f"nothing is left to search: {', '.join(self.left_out) or 'the space is empty'}")
        search = {"config": without(effective(config), self.space), "seed": cfg.seed, "space": self.space}
        self.identity = hashlib.sha256(json.dumps(search, sort_keys=True).encode()).hexdigest()[:10]
        self.name = f"{choices['model']}-{choices['data']}-{self.identity}".replace("/", "_")

    def settings(self, found: Mapping[str, Any]) -> list[str]:
        """The words of the command line of the run with these constants."""
        return [*self.words, *(f"{key}={as_word(value)}" for key, value in found.items())]

    def job(self, found: Mapping[str, Any], row: str) -> Job:
        words = [*self.settings(found), f"{ROW}'{row}'"]
        (job,) = compose_jobs(self.loader, self.master, [words], self.options)
        check_folder(job)
        return job

    def command(self, job: Job) -> list[str]:
        return [sys.executable, self.script, *job.overrides]


def check_run(config: Mapping[str, Any], choices: Mapping[str, Any]) -> None:
    """Raise ValueError where trials would share a folder, be a table, or be chosen by test text."""
    for key in ("run_dir", "overwrite"):
        if config[key]:
            raise ValueError(
                f"{key}={config[key]} in a search: each trial has its own folder and continues in it"
            )
    if choices.get("sweeps") or config["sweep"]:
        raise ValueError(
            "a search is of one model on one corpus: leave out sweeps, which src/train.py -m runs"
        )
    if config["data"].get("valid_bytes") == 0:
        raise ValueError(
            f"data={choices['data']} validates on its test text, by which nothing may be chosen: cut validation text "
            "from the training text with data.valid_bytes=1000000"
        )


def has(config: Mapping[str, Any], key: str) -> bool:
    """Whether a config holds this dotted key."""
    first, _, rest = key.partition(".")
    node = config.get(first)
    return has(node, rest) if rest and isinstance(node, Mapping) else not rest and first in config


def without(config: Mapping[str, Any], keys: Collection[str], path: str = "") -> dict[str, Any]:
    """A nested config less these dotted keys."""
    return {
        key: without(value, keys, f"{path}{key}.") if isinstance(value, Mapping) else value
        for key, value in config.items()
        if f"{path}{key}" not in keys
    }


class Attempt(Workers):
    """The run of one trial, and what a person sees of it: one line that moves in a terminal.

    Tells the trial of each epoch, and interrupts the process where the trial is to be pruned. A run that failed
    otherwise than by diverging is tried again.
    """

    def __init__(
        self, job: Job, command: Callable[[Job], list[str]], record: Record, trial: Any, title: str
    ) -> None:
        result = result_of(job.run_dir, job.config_hash, job.seed)
        super().__init__([job], command, record, self, retry=result is None)
        self.job, self.trial, self.title = job, trial, title
        self.status = console.status(title)
        self.last_lines: list[str] = []
        self.epochs = 0
        self.pruned = False

    def changed(self, job: Job, lines: list[str]) -> None:
        self.last_lines = lines

    def refresh(self) -> None:
        if self.report() and not self.deadline and self.trial.should_prune():
            self.pruned = True
            self._interrupt()

    def report(self) -> bool:
        """Tell the trial of epochs that it has not heard of; whether there were any."""
        scores = read_scores(self.job.run_dir)[self.epochs :]
        for score in scores:
            self.epochs += 1
            self.trial.report(score, self.epochs)
            self.status.update(f"{self.title}: epoch {self.epochs}, validation perplexity {score:.2f}")
        return bool(scores)

    def conclude(self, study: Any) -> None:
        """Tell the study what came of the trial, if something did; raises what ends the search."""
        self.report()
        job, number = self.job, self.trial.number
        result = result_of(job.run_dir, job.config_hash, job.seed)
        found = "  ".join(f"{key}={as_word(value)}" for key, value in constants(self.trial.params).items())
        took = "" if job.seconds is None else f"  ({duration(job.seconds)})"
        if job.status == "done" and job.valid_ppl is not None:
            earlier = best(study)
            mark = "*" if earlier is None or job.valid_ppl < earlier.value else " "
            study.tell(number, job.valid_ppl)
            say(f"{self.title}  {job.valid_ppl:8.2f} {mark}  {found}{took}")
        elif result is not None:
            self.trial.set_user_attr(REASON, job.error or "no finite validation perplexity")
            study.tell(number, state=load_optuna().trial.TrialState.FAIL)
            say(f"{self.title}    failed    {found}{took}: {job.error}", "red")
        elif self.pruned:
            study.tell(number, state=load_optuna().trial.TrialState.PRUNED)
            say(f"{self.title}    pruned    {found}{took}: epoch {self.epochs}", "dim")
        elif not self.stopped:
            for line in self.last_lines:
                say(f"    {line}", "dim")
            raise ValueError(
                f"{self.title} failed, and not by diverging: {job.error}; the same command tries it again"
            )
        self.pass_on()


def read_scores(run_dir: Path) -> list[float]:
    """Validation perplexity after each epoch so far."""
    path = run_dir / "metrics.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [float(row["valid_ppl"]) for row in csv.DictReader(file)]


# -- the study -----------------------------------------------------------------------------------------------


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


# -- what a person sees --------------------------------------------------------------------------------------


def announce(title: str, runs: Runs) -> None:
    say(title, "bold")
    say(f"  searched: {', '.join(runs.space)}")
    if runs.left_out:
        say(f"  left out: {', '.join(runs.left_out)}")


def show_best(study: Any, runs: Runs) -> None:
    """Print the command that repeats the best trial. Raises ValueError where no trial was completed."""
    found = best(study)
    if found is None:
        raise ValueError("no trial was completed: what is said of each above tells why")
    say(f"best validation perplexity {found.value:.2f}, by which alone it was chosen:", "bold")
    say(shlex.join(["python", "src/train.py", *runs.options, *runs.settings(constants(found.params))]))


def say(text: str, style: str = "") -> None:
    console.print(Text(text, style), soft_wrap=True)
