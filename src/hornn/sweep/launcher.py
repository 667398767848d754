"""Hydra's door to the jobs of a multirun: each runs as a process of its own."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig
from rich.console import Console

from hornn.checks import require_choice, require_positive
from hornn.command_line.ending import same_command
from hornn.command_line.hydra_patches import admit_plugins
from hornn.places import script_of
from hornn.sweep.expand import check_folder, jobs_on_record
from hornn.sweep.gpus import find_pool
from hornn.sweep.outcome import conclude, tell_other_code
from hornn.sweep.progress import Watch
from hornn.sweep.sweeper import TableSweeper
from hornn.sweep.workers import Workers

ON_FAILURE = ("continue", "stop")


class ProcessLauncher(Launcher):
    """Runs the jobs of a sweep as processes; conf/hydra/launcher/process.yaml explains the arguments.

    Raises ValueError for an argument out of range and, at the end, where jobs failed.
    """

    shows_jobs = True  # in a table of its own

    def __init__(self, jobs: int, gpus: Any, per_gpu: int, on_failure: str, program: str | None) -> None:
        require_positive(**{"hydra.launcher.jobs": jobs})
        require_choice("hydra.launcher.on_failure", on_failure, ON_FAILURE)
        self.jobs = jobs
        self.pool = find_pool(gpus, per_gpu)
        self.on_failure = on_failure
        self.program = program

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.loader = hydra_context.config_loader
        self.config = config
        self.retry_failed = config.hydra.sweeper.get("retry_failed", False)
        script = Path(self.program or script_of(Path(task_function.__code__.co_filename)))
        self.command = [sys.executable, str(script.absolute())]

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs, record = jobs_on_record(self.loader, self.config, job_overrides)
        for job in jobs:
            check_folder(job)
            job.gpus = self.pool.wanted_by(job.config)
        at_once = min(self.jobs, len(jobs))
        watch = Watch(record.name, jobs, at_once, Console())
        workers = Workers(
            jobs,
            self.command,
            record,
            watch,
            at_once,
            self.pool,
            threads_each(at_once),
            self.on_failure == "stop",
            self.retry_failed,
        )
        workers.look_up()
        tell_other_code(jobs, watch.console)
        with watch:
            workers.run()
        workers.pass_on()
        again = f"{same_command()}, with hydra.sweeper.retry_failed=true, tries them again"
        conclude(jobs, f"Once the cause is mended, {again}")
        return []


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(at_once: int) -> int | None:
    """The threads of each of so many processes at a time; None, as many as torch chooses, for one alone."""
    return cores() // at_once or 1 if at_once > 1 else None


def register() -> None:
    """Make the sweeper and the launcher known to Hydra, which else takes plugins from its own packages only."""
    for plugin in (TableSweeper, ProcessLauncher):
        Plugins.instance().register(plugin)
    admit_plugins("hornn.sweep")
