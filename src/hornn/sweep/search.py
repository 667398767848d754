"""The search of constants that the papers leave open, by validation perplexity alone.

A trial is an ordinary run in a process of its own and in the folder that its config names, so that it resumes, and is
not repeated once it is done. The study is a journal of trials below outputs/studies/.
"""

import csv
import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.text import Text

from hornn.recipe import flatten
from hornn.run.composed import as_dict
from hornn.run.identity import identify, without
from hornn.sweep.expand import ROW, check_folder, compose_jobs, options_of
from hornn.sweep.job import Job
from hornn.sweep.progress import duration
from hornn.sweep.record import Record
from hornn.sweep.run_state import claim, result_of
from hornn.sweep.space import as_word, constants, distribution, leaves
from hornn.sweep.study import REASON, best, build_pruner, build_sampler, counted, load_optuna, open_study
from hornn.sweep.workers import Workers

FOLDER = Path("outputs", "studies")
JOURNAL = "journal.log"
OWN = ("trials", "study", "pruning", "space")  # keys of the search beside the keys of its runs

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
    name = str(cfg.study or runs.name)
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
            if key in keys.values():
                self.left_out.append(f"{key} (set)")
            elif key in known:
                self.space[key] = values
            elif any(given.startswith(f"space.{key}") for given in keys.values()):
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


class Attempt(Workers):
    """The run of one trial, and what a person sees of it: one line that moves in a terminal.

    Tells the trial of each epoch, and interrupts the process where the trial is to be pruned. A run that failed
    otherwise than by diverging is tried again.
    """

    def __init__(
        self, job: Job, command: Callable[[Job], list[str]], record: Record, trial: Any, title: str
    ) -> None:
        result = result_of(job.run_dir, job.name, job.seed)
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
        result = result_of(job.run_dir, job.name, job.seed)
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
