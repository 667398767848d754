"""A job of Hydra's other launchers (basic, joblib, submitit): it runs in a process of its own there too."""

import os
import sys
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from rich.console import Console

from hornn.run.composed import as_dict
from hornn.run.identity import identify
from hornn.sweep.expand import ROW, check_folder, check_start, options_of
from hornn.sweep.job import Job
from hornn.sweep.onlooker import SINCE, WATCHED
from hornn.sweep.progress import Watch
from hornn.sweep.record import Record
from hornn.sweep.run_state import moment_of_files
from hornn.sweep.workers import Workers


def run_apart(cfg: DictConfig, program: Path) -> None:
    """Run the job that Hydra has composed as a process of `program`; one that is done is skipped.

    The process ends when this one does: a job that Slurm stops and queues again continues its run, `overwrite=true`
    or not. `hydra.sweeper.retry_failed=true` runs also those again that diverged. Raises ValueError where the run
    fails, or diverged before, and where the run that it starts from is not done.
    """
    settings = HydraConfig.get()
    config, choices = as_dict(cfg), settings.runtime.choices
    identity = identify(choices, config)
    own = [word for word in settings.overrides.task if not word.startswith(ROW)]
    row = str(cfg.sweep.get("row") or " ".join(word for word in own if not word.startswith("seed=")))
    options = options_of(settings)
    watched = os.environ.get(WATCHED)
    record = Record(watched or str(cfg.sweep.get("name") or choices.get("sweeps") or "adhoc"))
    entries = record.read() if watched else []
    run = (str(identity.folder), identity.name)
    rows = [entry.row for entry in entries if (entry.run_dir, entry.name) == run]
    job = Job(rows or [row or choices["model"]], [*options, *own], identity, config)
    job.overwrite, job.launched = config["overwrite"], float(os.environ.get(SINCE) or moment_of_files())
    check_folder(job)
    if cfg.sweep.get("row"):
        check_start(job, {entry.run_dir: entry.status for entry in entries})
    # Lightning would else leave it to Slurm to start its further ranks.
    os.environ["SLURM_JOB_NAME"] = "interactive"
    retry = settings.sweeper.get("retry_failed", False)
    retry = retry or job.result() is None
    # The output of a job of Slurm's goes to a file of its own.
    watch = Watch(record.name, [job], 1, Console(quiet=bool(watched and "SLURM_JOB_ID" not in os.environ)))
    command = [sys.executable, str(program.absolute())]
    workers = Workers([job], command, record, watch, retry=retry)
    workers.look_up(supersede=not watched)
    with watch:
        workers.run()
    workers.pass_on()
    if job.status == "failed":
        raise ValueError(f"{job.label} seed={job.seed}: {job.error}")
