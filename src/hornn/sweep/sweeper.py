"""The jobs that a multirun asks for: the rows of its table times the seeds, times what the command line varies."""

import itertools
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hornn.checks import require_truth
from hornn.command_line.ending import interrupted_at_once, same_command
from hornn.command_line.strict_keys import GIVEN, check_keys, compose_reference, did_you_mean, nearest_of
from hornn.recipe import flatten
from hornn.reporting.configs import Files
from hornn.reporting.departures import Recipe
from hornn.reporting.grid_rows import Value, as_text, grid_rows
from hornn.reporting.inheritance import load_sweep
from hornn.reporting.schema import MEASURED, SWEEP_KEYS, check_known
from hornn.reporting.sweeps import Sweep, define
from hornn.run.identity import BEST, INIT_FROM
from hornn.shown import first_line
from hornn.sweep.expand import ROW, compose, compose_job, jobs_on_record, keys_of
from hornn.sweep.job import Job
from hornn.sweep.onlooker import Onlooker
from hornn.sweep.outcome import conclude
from hornn.sweep.slurm_queue import Queue
from hornn.sweep.table_rows import check_table, picked, runs_of, seeds_of, starts_of, with_starts

OF_RUNS = ("name", "rows", "grid", "seeds")  # keys of a table that say what is run


class TableSweeper(Sweeper):
    """The product of all listed values; with `sweep.rows` or `sweep.grid` in the config, one such product for each
    row that is a run.

    params: overrides that a file gives, as if they stood first on the command line.
    only: names of the rows to run, the first one first; None: all. retry_failed: run failed and diverged runs again.

    A row's `run` is a list of overrides. Its `start` names the row whose trained network it starts from, or the rows
    that it mixes, seed by seed; these come along where they are not picked, without `overwrite`. `sweep.seeds` are
    the seeds of all rows without `seeds` of their own; `sweep.seeds=[1,2]` or `seed=1,2` on the command line takes the
    place of both. Raises ValueError where the command line sets what a row sets, and for rows that cannot be told apart
    or read, or that `only` names in vain.
    """

    def __init__(self, params: Mapping[str, Any], only: Any = None, retry_failed: bool = False) -> None:
        require_truth(**{"hydra.sweeper.retry_failed": retry_failed})
        self.retry_failed = retry_failed
        self.params = params
        self.only = only

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.loader = hydra_context.config_loader
        self.settings = config
        self.jobs = Plugins.instance().instantiate_launcher(hydra_context, task_function, config)

    def sweep(self, arguments: list[str]) -> Any:
        batch = self._batch(arguments)
        references: dict[str, DictConfig] = {}
        checked: set[int] = set()
        with interrupted_at_once():
            for overrides in batch:
                try:
                    cfg, settings = compose_job(self.loader, self.settings, overrides)
                    if id(cfg) not in checked:  # else it has another seed alone
                        check_job(cfg, settings, references)
                        checked.add(id(cfg))
                except Exception as error:
                    error.add_note(f"in the job {' '.join(overrides)}")
                    raise
        if getattr(self.jobs, "shows_jobs", False):
            return [job.return_value for job in self.jobs.launch(batch, initial_job_idx=0)]
        self._launch_in_waves(batch)
        return []

    def _batch(self, arguments: Sequence[str]) -> list[list[str]]:
        """The overrides of each job: every product of the command line's values, of a table in each row and seed."""
        parser = OverridesParser.create(config_loader=self.loader)
        parsed = parser.parse_overrides([*as_overrides(self.params), *arguments])
        for override in parsed:
            check_one_value(override)
        of_table = {key for override in parsed for key in keys_of(override) if key.startswith("sweep.")}
        # What they say is in the config by now; the name goes on to each job, for launchers of Hydra's own.
        given = [each for each in parsed if {*keys_of(each)}.isdisjoint(of_table - {"sweep.name"})]
        table: Any = OmegaConf.to_container(self.settings.get("sweep", {}), resolve=True)
        table = {key: value for key, value in table.items() if (key, value) != ("name", None)}
        chosen = self.settings.hydra.runtime.choices.get("sweeps")
        check_table(table, chosen)
        self._check_words(of_table, bool(table.get("rows") or "grid" in table), chosen)
        if not chosen:
            check_name(table.get("name"), self.loader.get_group_options("sweeps"))
        batch = product_of(given)
        configs = Composed(self.loader, self.settings, batch[0])
        if "grid" in table:
            table["rows"] = [*table.get("rows", ()), *rows_of_grid(table, configs)]
        if not table.get("rows"):
            if self.only is not None:
                raise ValueError(
                    f"hydra.sweeper.only={self.only} picks rows of a table: give one by sweeps=NAME"
                )
            return batch
        keys = {key for override in given for key in keys_of(override)}
        runs = runs_of(table, keys, parser)
        starts = starts_of(table, runs, keys)
        if chosen:
            check_file(chosen, self.loader, configs)
            if table.get("name") != chosen:
                check_name(table.get("name"), self.loader.get_group_options("sweeps"))
        chosen_rows = picked(runs, self.only)
        rows = with_starts(chosen_rows, starts)
        asked = "sweep.seeds" in of_table
        if asked and "seed" in keys:
            raise ValueError("seed= and sweep.seeds= are both the seeds of all rows: give one of the two")
        seeds = (
            {name: [[]] for name in rows} if "seed" in keys else seeds_of(table, self.settings.seed, asked)
        )
        jobs = []
        several = [(name, product, seed) for name in rows for product in batch for seed in seeds[name]]
        for name, product, seed in several:
            before = [[*product, *runs[start], *seed] for start in starts.get(name, ())]
            start = [self.weights(before)] if before else []
            kept = [] if name in chosen_rows else ["overwrite=false"]
            jobs.append([*product, *runs[name], *start, *kept, f"{ROW}'{name}'", *seed])
        return jobs

    def _check_words(self, keys: set[str], has_rows: bool, chosen: str | None) -> None:
        """Raise ValueError for a key of `sweep` on the command line by which nothing is set."""
        for key in sorted(keys - {"sweep.name"}):
            check_known([key.split(".")[1]], SWEEP_KEYS, "sweep")
            if chosen and key.split(".")[1] not in OF_RUNS:
                raise ValueError(
                    f"{key} is for the report, which reads it in the sweep file: write it there, in {chosen}.yaml"
                )
            if not has_rows:
                raise ValueError(
                    f"{key} is of a table: give one by sweeps=NAME; without a table, seed=1,2 gives seeds"
                )
            if OmegaConf.select(self.settings, key) is None:
                raise ValueError(
                    f"the table of this command has no {key}, or null: give it a value in the sweep file"
                )

    def _launch_in_waves(self, batch: Sequence[Sequence[str]]) -> None:
        """Run the jobs by a launcher of Hydra's; a job that starts from the weights of others runs after these others.

        Raises ValueError at the end where jobs failed, and what the launcher itself raised.
        """
        jobs, record = jobs_on_record(self.loader, self.settings, batch)
        record.merge([entry for job in jobs for entry in job.entries()], supersede=True)
        fault, launched = None, 0
        for wave in waves_of(jobs):
            queue = self._watch_queue()
            with Onlooker(record, wave, Console(), self.retry_failed, queue) as onlooker:
                words = [batch[job.place] for job in onlooker.open_jobs]
                fault = self._launch(words, launched, queue) or fault
                launched += len(words)
            if fault and not any(job.status == "failed" or job.cut_off for job in wave):
                break  # the launcher itself failed
            for job in onlooker.open_jobs:  # a process that has left nothing was cut off
                job.cut_off |= job.status == "queued"
        again = f"Once the cause is mended, {same_command()} tries them again"
        conclude(jobs, f"{again}, with hydra.sweeper.retry_failed=true also those that diverged")
        if fault:
            raise fault

    def _watch_queue(self) -> Queue | None:
        """Slurm's queue for the jobs that are launched next, where Slurm runs them."""
        if getattr(self.jobs, "_EXECUTOR", None) != "slurm":
            return None
        if missing := [tool for tool in ("sbatch", "srun") if shutil.which(tool) is None]:
            raise ValueError(
                f"hydra/launcher=slurm needs {' and '.join(missing)} on the PATH: start it on a machine of the cluster"
            )
        queue = Queue(str(self.settings.hydra.launcher.submitit_folder))
        queue.watch()
        return queue

    def _launch(self, batch: Sequence[Sequence[str]], first: int, queue: Queue | None) -> Exception | None:
        """Run these jobs, numbered from `first` on, by a launcher of Hydra's.

        It ends at the first error, which is returned; of a queue, the other jobs are waited for.
        """
        try:
            for job in self.jobs.launch(batch, initial_job_idx=first) if batch else ():
                _ = job.return_value  # raises the job's error
        except Exception as error:
            if queue:
                queue.wait()
            if type(error).__name__ == "FailedJobError":  # submitit's: sbatch has refused
                return ValueError(
                    f"Slurm refuses the jobs ({first_line(error)}): see to hydra.launcher.partition, account, qos and "
                    "timeout_min, or run fewer jobs at once by hydra.sweeper.only"
                )
            return None if type(error).__name__ == "UncompletedJobError" else error  # cut off too often
        return None

    def weights(self, runs: Sequence[Sequence[str]]) -> str:
        """The override by which a run starts from the trained networks of these runs, each given by its overrides."""
        paths = [f"'{compose(self.loader, self.settings, words)[0].folder / BEST}'" for words in runs]
        return f"{INIT_FROM}={paths[0] if len(paths) == 1 else '[' + ','.join(paths) + ']'}"


@dataclass
class Composed:
    """What a table must know of configs, as Hydra composes them with these words; `known`: keys of each run."""

    loader: Any
    master: DictConfig
    words: Sequence[str]
    known: dict[tuple[str, ...], Collection[str]] = field(default_factory=dict, init=False)

    def is_group(self, key: str) -> bool:
        return bool(self.loader.has_group(key))

    def holds(self, run: Sequence[str], key: str) -> bool:
        if tuple(run) not in self.known:
            cfg: Any = self.loader.load_sweep_config(self.master, [*self.words, *run])
            content: Any = OmegaConf.to_container(cfg, resolve=False)
            self.known[tuple(run)] = flatten(content).keys()
        return key in self.known[tuple(run)]

    def recipe(self, run: Sequence[str]) -> Recipe:
        """A stand-in, where no report can read what Hydra does: each job is composed before any is launched."""
        return Recipe(config={"run": sorted(run)})


def rows_of_grid(table: Mapping[str, Any], configs: Composed) -> list[dict[str, Any]]:
    rows, _ = grid_rows(table["grid"], {}, configs, f"sweep {table.get('name')!r}: ")
    return [{"name": row.name, "run": list(row.run)} for row in rows]


def check_file(chosen: str, loader: Any, configs: Composed) -> None:
    """Raise ValueError, which names the file, for a sweep file that a report would refuse once all is trained.

    What the command line changes of it does not count. configs: for files of `hydra.searchpath`, which no report reads.
    Warns as `warn_of_metrics`.
    """
    places = loader.get_search_path().get_path()
    folders = [(place.provider, Path(place.path.removeprefix("file://"))) for place in places]
    paths = [folder / "sweeps" / f"{chosen}.yaml" for _, folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    content = load_sweep(path) if path else {}
    if path and "sweep" in content:
        found = dict(folders)
        known = found.keys() <= {"hydra", "main", "command-line", "schema"}
        of_report = Files(content, found["main"], found.get("command-line"))
        warn_of_metrics(define(path, content, of_report if known else configs))


def warn_of_metrics(sweep: Sweep) -> None:
    """Warn of a metric that no run of ours measures and no row has a published number of: it may be mistyped."""
    for metric in sweep.metrics:
        is_published = any(metric.key in row.published for row in sweep.rows)
        if metric.key.partition(".")[0] not in MEASURED and not is_published:
            said = f"warning: {sweep.path}: no run of ours measures {metric.key!r}; "
            said += did_you_mean(nearest_of(metric.key, MEASURED)) or "its table may stay empty"
            Console(stderr=True, highlight=False, soft_wrap=True).print(said, style="yellow", markup=False)


def check_job(cfg: DictConfig, job: DictConfig, references: dict[str, DictConfig]) -> None:
    """Raise ValueError for a key or value that the process of a job would refuse once others are trained.

    cfg, job: what `compose_job` gives. references: by choices, of the jobs before.
    """
    from hornn.build import check_model

    mark = repr(sorted(job.runtime.choices.items(), key=str))
    if mark not in references:
        references[mark] = compose_reference(job)
        check_model(references[mark].model)
    # the reader of tables knows its keys; a table of many rows holds thousands
    cfg.sweep = references[mark].sweep
    check_keys(cfg, references[mark], GIVEN, job.runtime.choices)


def waves_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """First the jobs that start from none of these jobs, then the jobs that start from the first or mix them."""
    waves = ([job for job in jobs if bool(job.after) is late] for late in (False, True))
    return [wave for wave in waves if wave]


def check_name(name: str | None, files: Sequence[str]) -> None:
    """Raise ValueError where a sweep is called like a file that is not its own, whose record it would get."""
    if name in files:
        raise ValueError(f"sweep.name={name} is the name of a sweep file: give another one, or sweeps={name}")


def as_overrides(params: Any) -> list[str]:
    """`hydra.sweeper.params` as overrides. ValueError for a value that is no plain one."""
    where = "hydra.sweeper.params"
    if not isinstance(params, Mapping):
        raise ValueError(f"{where} must hold keys and values, such as model: 'rnn,lstm', got {params!r}")
    for key, value in params.items():
        if not isinstance(value, Value):
            raise ValueError(f"{where}: {key} lists its values in one text, such as 'A,B', got {value!r}")
    return [f"{key}={as_text(value)}" for key, value in params.items()]


def check_one_value(override: Override) -> None:
    """Raise ValueError for several values of a key of the table itself, of which no row would be made."""
    for key in keys_of(override) if override.is_sweep_override() else ():
        if key.startswith("sweep."):
            values = str(override.input_line).partition("=")[2]
            remedy = "give one name" if key == "sweep.name" else f"write {key}=[{values}] for one list"
            raise ValueError(f"{override.input_line} is several values of a key of the table: {remedy}")


def product_of(overrides: Sequence[Override]) -> list[list[str]]:
    """Every combination of the listed values; of two settings of one key the last counts."""
    values = {}
    for override in overrides:
        key = override.get_key_element().removeprefix("++")  # which sets what the key alone sets
        if not override.is_sweep_override():
            values[key] = [str(override.input_line)]
        elif override.is_discrete_sweep():
            values[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
            if not values[key]:
                raise ValueError(f"{override.input_line} names no value: nothing fits it")
        else:
            raise ValueError(f"{override.input_line} is no list of values: write {key}=VALUE,VALUE")
    return [list(words) for words in itertools.product(*values.values())]
