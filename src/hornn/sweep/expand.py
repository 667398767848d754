"""From the overrides of a sweep to its jobs, one for each run that they compose to."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, open_dict

from hornn.recipe import flatten, load
from hornn.result import read_result
from hornn.run.composed import as_dict
from hornn.run.identity import CONFIG, Identity, differing, identify, weights_given
from hornn.sweep.job import Job
from hornn.sweep.record import Entry, Record
from hornn.sweep.run_state import moment_of_files

ROW = "+sweep.row="  # the override by which the sweeper says which row of the table a job belongs to
SEED = re.compile(r"seed=(0|[1-9]\d*)")
# Words that say nothing of one run.
OF_TABLES = re.compile(r"\+*(sweep\.(?!name=|row=)|hydra\.sweeper\.|hydra[./]launcher[.=])")
NO_SETTING = ("--", "hydra.", "seed=", "overwrite=", "sweep.name=")  # words that make no other row of a job


def jobs_on_record(
    loader: Any, master: DictConfig, batch: Sequence[Sequence[str]]
) -> tuple[list[Job], Record]:
    """The jobs of these lists of overrides and the record of their sweep. Errors: as of both."""
    jobs = compose_jobs(loader, master, batch, options_of(master.hydra))
    record = Record(sweep_name(master, batch))
    in_a_table = any(word.startswith(ROW) for overrides in batch for word in overrides)
    if not in_a_table and not master.hydra.runtime.choices.get("sweeps"):
        name_beside(jobs, record.read())
    return jobs, record


def name_beside(jobs: Sequence[Job], held: Sequence[Entry]) -> None:
    """Let jobs without a table take no row that other settings have on record, for they would take their place there.

    A run that is on record keeps its row. Any other one whose row is taken is called by all that its overrides say,
    and, where less was said than of the row that is taken, by its name, too.
    """
    rows: dict[str, list[str]] = {}
    for entry in held:
        rows.setdefault(entry.name, []).append(entry.row)
    settings = {entry.row: set(settings_of(entry.overrides)) for entry in held}
    for job in jobs:
        own = settings_of(job.overrides)
        longer = (" ".join(own), " ".join([*own, job.name]))
        free = [
            next((label for label in (row, *longer) if settings.get(label, set(own)) == set(own)), longer[-1])
            for row in job.rows
        ]
        job.rows = list(dict.fromkeys(rows.get(job.name, free)))


def keys_of(override: Override) -> list[str]:
    """The dotted keys that an override sets. A mapping sets each key that it holds."""
    key, value = str(override.key_or_group), override.value()
    return [*flatten({key: value})] if isinstance(value, dict) and value else [key]


def settings_of(overrides: Sequence[str]) -> list[str]:
    """The overrides that tell the row of a job from other rows."""
    return [word for word in overrides if not word.lstrip("+").startswith(NO_SETTING)]


def compose_jobs(
    loader: Any, master: DictConfig, batch: Sequence[Sequence[str]], options: Sequence[str] = ()
) -> list[Job]:
    """The jobs of these lists of overrides; equal runs are one job.

    Outside a table the row of a job is what its overrides say that not all the others say too. `options`
    stand before the overrides of every job. A job that starts from the weights of others waits for them.
    Raises ValueError where different runs would share a folder.
    """
    common = set.intersection(*(set(overrides) for overrides in batch)) if batch else set()
    jobs: dict[Path, Job] = {}
    launched = moment_of_files()
    for place, overrides in enumerate(batch):
        own = [word for word in overrides if not word.startswith(ROW)]
        identity, config = compose(loader, master, own)
        named = [word.removeprefix(ROW).strip("'") for word in overrides if word.startswith(ROW)]
        distinct = [word for word in own if word not in common and not word.lstrip("+").startswith("seed=")]
        row = named[0] if named else " ".join(distinct) or identity.choices["model"]
        overwrite = config["overwrite"]
        job = Job([row], [*options, *own], identity, config, place, overwrite=overwrite, launched=launched)
        if identity.folder in jobs:
            other = jobs[identity.folder]
            if other.seed != job.seed:
                raise ValueError(
                    f"seeds {other.seed} and {job.seed} of {row} would both write to {job.run_dir}: leave out run_dir"
                )
            both = f"{other.label} and {row} would both write to {job.run_dir}"
            check_same(other.identity.to_dict(), identity.to_dict(), both)
            other.rows += [row] if row not in other.rows else []
            if job.overwrite and not other.overwrite:
                other.overwrite, other.place = True, place
        else:
            jobs[identity.folder] = job
    found = {folder.resolve(): job for folder, job in jobs.items()}
    for job in jobs.values():
        job.after = [found[path] for folder in start_folders(job) if (path := folder.resolve()) in found]
    return list(jobs.values())


def compose(loader: Any, master: DictConfig, overrides: Sequence[str]) -> tuple[Identity, dict[str, Any]]:
    """Who the run of these overrides is, and its resolved config."""
    cfg, settings = compose_job(loader, master, overrides)
    config = as_dict(cfg)
    return identify(settings.runtime.choices, config), config


def compose_job(loader: Any, master: DictConfig, overrides: Sequence[str]) -> tuple[DictConfig, DictConfig]:
    """What these overrides compose to: the config and its `hydra` node, taken out of it.

    Jobs that differ in their row's name or their seed alone share both, the seed being that of the last call: Hydra
    takes 0.1 to 0.3 s to compose a job, and a table has hundreds.
    """
    words = [word for word in overrides if not word.startswith(ROW)]
    seeds = [word for word in words if SEED.fullmatch(word)]
    shared = len(seeds) == 1
    key = tuple("seed=" if shared and word in seeds else word for word in words)
    if key not in loader.jobs:
        cfg = loader.load_sweep_config(master, words)
        settings = cfg.hydra
        with open_dict(cfg):
            del cfg["hydra"]
        loader.jobs[key] = cfg, settings
    cfg, settings = loader.jobs[key]
    if shared:
        cfg.seed = int(seeds[0].removeprefix("seed="))
    return cfg, settings


def options_of(settings: Any) -> list[str]:
    """What of a command line, beside its overrides, decides how a config is composed; `settings`: its `hydra` node."""
    folders = [source.path for source in settings.runtime.config_sources if source.provider == "command-line"]
    paths = [word for word in settings.overrides.hydra if word.startswith("hydra.searchpath")]
    name = settings.job.config_name
    own = [] if name in (None, "config", "tune") else [f"--config-name={name}"]
    return [*(f"--config-dir={folder}" for folder in folders), *own, *paths]


def check_not_a_table(sweep: Any, settings: Any) -> None:
    """Raise ValueError where one run is given a table (its `sweep` node) and nothing that tells the table's runs apart.

    Hydra would train the default model by the table's settings. A row that sets nothing is such a run; `settings`: the
    `hydra` node. Likewise for words that only a table takes.
    """
    table: Any = OmegaConf.to_container(sweep, resolve=False)
    words: Any = OmegaConf.to_container(settings.overrides.task, resolve=False)  # the values may not be there
    given = {word.partition("=")[0] for word in words}
    listed: Any = OmegaConf.to_container(settings.get("sweeper") or OmegaConf.create(), resolve=False)
    params = listed.get("params") or {}
    of_tables = [word for word in (*words, *settings.overrides.hydra) if OF_TABLES.match(word)]
    if of_tables or (params and given.isdisjoint(params)):
        asked = " ".join(of_tables) or f"sweeps={settings.runtime.choices.get('sweeps')}"
        raise ValueError(f"{asked} is of several runs: add -m to run them")
    moved = [word for word in settings.overrides.hydra if re.match(r"\+*hydra\.run\.dir=", word)]
    if moved and not settings.job.chdir:
        raise ValueError(f"{moved[0]} moves no run: give run_dir=FOLDER")
    runs = runs_listed(table)
    if runs and all(run and given.isdisjoint(word.partition("=")[0] for word in run) for run in runs):
        many = "a grid" if table.get("grid") else f"a table of {len(runs)} runs"
        raise ValueError(
            f"sweeps={settings.runtime.choices.get('sweeps')} is {many}: add -m to run it, or "
            f"what one of its rows runs, such as {' '.join(runs[0])}"
        )


def runs_listed(table: Mapping[str, Any]) -> list[list[str]]:
    """The overrides of each row of a table that is a run, and of the first combination of its grid.

    Raises ValueError for a table that cannot be read so: the sweeper says what is wrong with it.
    """
    try:
        runs = [as_words(row["run"]) for row in table.get("rows") or () if row.get("run") is not None]
        first: list[str] = []
        for key, values in (table.get("grid") or {}).items():
            named = isinstance(values, Mapping)
            first += as_words(next(iter(values.values()))) if named else [f"{key}={values[0]}"]
    except (AttributeError, TypeError, IndexError, StopIteration, KeyError):
        raise ValueError(f"sweep {table.get('name')!r} is a table: add -m to run it") from None
    return [*runs, first] if first else runs


def as_words(run: Any) -> list[str]:
    """Raise TypeError unless these are overrides in a list."""
    if not isinstance(run, list):
        raise TypeError(f"{run!r} is no list")
    return [str(word) for word in run]


def check_folder(job: Job) -> None:
    """Raise ValueError where the run's folder holds a run of another config: by its own choice, or by equal names."""
    path = job.run_dir / CONFIG
    if path.exists() and not job.overwrite:
        check_same(
            load(path, yaml.SafeLoader),
            job.identity.to_dict(),
            f"{job.run_dir} holds another run than {job.label}",
        )


def check_start(job: Job, launched: Mapping[str, str]) -> None:
    """Raise ValueError unless the runs whose weights the job starts from are done.

    launched: folder -> status of the runs of the same launch. A result does not count there while it is replaced.
    """
    for folder in start_folders(job):
        completed = (read_result(folder) or {}).get("status") == "completed"
        if not completed or launched.get(str(folder), "done") != "done":
            raise ValueError(
                f"{job.label} starts from the run in {folder}, which is not done: launch it then, by "
                f"hydra.sweeper.only=[{job.label}]"
            )


def start_folders(job: Job) -> list[Path]:
    """The folders of the runs whose weights the job starts from."""
    return [Path(path).parent for path in weights_given(job.config)]


def check_same(one: Mapping[str, Any], other: Mapping[str, Any], problem: str) -> None:
    """Raise ValueError, with the keys that differ, unless both say of themselves that they are the same run."""
    if different := differing(one, other):
        raise ValueError(
            f"{problem}, but their configs differ in {', '.join(different)}: give them folders by run_dir=FOLDER"
        )


def sweep_name(config: DictConfig, batch: Sequence[Sequence[str]]) -> str:
    """The sweep's name: its table's, its file's, or one made of all that its jobs ask for beside the seed."""
    if name := config.get("sweep", {}).get("name"):
        return str(name)
    if chosen := config.hydra.runtime.choices.get("sweeps"):
        return str(chosen)
    asked = sorted({tuple(sorted(w for w in words if not w.startswith(("seed=", ROW)))) for words in batch})
    return f"adhoc-{hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:10]}"
