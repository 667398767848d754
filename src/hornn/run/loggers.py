"""What a run logs to between its epochs: the functions that the files of conf/logger name, and a user's own loggers."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from hornn.checks import require_package
from hornn.command_line.ending import IN_ROW, IN_SWEEP, same_command
from hornn.run.identity import Identity
from hornn.run.termination import ProcessLost
from hornn.shown import first_line

TAG_LENGTH = 64  # that Weights & Biases allows
BEST_SO_FAR = ("valid/ppl", "valid/nll", "valid/bpc", "valid/accuracy")  # their summary shows the best epoch
STEP = "trainer/global_step"  # by which Lightning logs
PACKAGES = ("tensorboard", "mlflow")  # that the choices of these names need


def find_loggers(nodes: Mapping[str, Any] | None) -> Callable[..., list[Logger]]:
    """What opens the loggers that these nodes of the config name, once the run's folder is there.

    A node with `_partial_: true` is called with the arguments of `wandb_logger`, any other one is a logger as it
    stands. Raises ValueError for a node that names none, and for one whose package is not installed.
    """
    found = {}
    for name, node in (nodes or {}).items():
        where = f"logger.{name}"
        if node is None:
            continue
        if not isinstance(node, Mapping) or "_target_" not in node:
            raise ValueError(
                f"{where} must have a _target_, a logger's class, got {node!r}: logger={name} chooses a file"
            )
        package = str(node["_target_"]).rpartition(".")[2].removesuffix("_logger")
        if package in PACKAGES:
            require_package(package, f"logger={name}")
        found[where] = node

    def open_loggers(run_dir: Path, identity: Identity, resume: bool) -> list[Logger]:
        opened = []
        for where, node in found.items():
            try:
                logger = instantiate(dict(node), _convert_="all")
                if isinstance(logger, partial):
                    logger = logger(run_dir=run_dir, identity=identity, resume=resume)
            except (TypeError, ModuleNotFoundError) as error:
                raise ValueError(f"{where}: {error}") from error
            if not isinstance(logger, Logger):
                raise ValueError(
                    f"{where}._target_ must name a logger of Lightning's, got {node['_target_']}"
                )
            opened.append(logger)
        return opened

    return open_loggers


class RunLogger(WandbLogger):
    """Weights & Biases, with what Lightning's own logger would need its ModelCheckpoint for."""

    def __init__(self, log_model: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.sends_model = log_model

    @rank_zero_only
    def send_model(self, path: Path) -> None:
        """Keep a checkpoint as an artifact of the run, if that was asked for; a mixture has none."""
        if not self.sends_model or not path.exists():
            return
        import wandb

        artifact = wandb.Artifact(f"model-{self.experiment.id}", type="model")
        artifact.add_file(str(path))
        self.experiment.log_artifact(artifact, aliases=["best"])


def wandb_logger(
    run_dir: Path,
    identity: Identity,
    resume: bool,
    project: str = "hornn",
    offline: bool = True,
    log_model: bool = False,
) -> RunLogger:
    """A Weights & Biases run below `run_dir`; its id has the run's name, so that a resumed run continues its own.

    In a sweep its group is the sweep and its job type the row of the table, else its job type is the model. It begins
    with `Identity.settings`, for `wandb leet` shows no others. Agents of `wandb sweep` give ids of their own.
    log_model: whether `best.ckpt` is to be kept as an artifact.
    """
    import wandb  # half a second, that no other logger need wait for

    if not offline and (mode := os.environ.get("WANDB_MODE")) in ("offline", "dryrun", "disabled"):
        raise ValueError(
            f"logger=wandb sends the run to Weights & Biases, and WANDB_MODE={mode} says that nothing is sent: use "
            "logger=wandb_offline, or unset WANDB_MODE"
        )
    if rank_zero_only.rank != 0:  # type: ignore[attr-defined]
        return RunLogger(project=project)  # stays idle: only the first rank logs
    words = {"model": identity.choices["model"], "data": identity.corpus, "seed": str(identity.seed)}
    name = project_name(identity)
    sweep, row = os.environ.get(IN_SWEEP), os.environ.get(IN_ROW)  # the launcher sets them
    paper, _, part = (sweep or "").rpartition("_")
    tags = {
        "paper": paper if part.startswith(("table", "figure")) else None,
        "table": sweep,
        **words,
    }
    # on a full disk each traceback of its log would be one more line of its log
    logging.raiseExceptions = False
    try:
        run = wandb.init(
            project=project,
            name=name,
            id=name.replace("/", "-"),  # of a file in a folder of its group, which an id cannot hold
            group=sweep,
            job_type=row or words["model"],
            tags=[f"{key}={value}"[:TAG_LENGTH] for key, value in tags.items() if value is not None],
            config=identity.settings(),
            dir=run_dir,
            mode="offline" if offline else "online",
            resume="allow" if resume and not offline else None,
            reinit="finish_previous",  # the run of the job before, in a multirun
            settings=wandb.Settings(silent=offline),  # online it prints the run's address
        )
    except wandb.Error as error:
        remedy = "log in once with `wandb login`, see to the variables WANDB_*"
        if "project name" in str(error):
            remedy = "give another logger.wandb.project"
        elif isinstance(error, wandb.errors.CommError):
            remedy = f"see to the network, or {remedy}"
        other = "logger=csv" if offline else "logger=wandb_offline"
        raise ValueError(
            f"Weights & Biases cannot start a run ({first_line(error)}): {remedy}, or use {other}"
        ) from error
    except ValueError as error:  # pydantic's, of a variable
        wrong = [
            f"WANDB_{'_'.join(map(str, each['loc'])).upper()}={each['input']}: {each['msg']}"
            for each in getattr(error, "errors", list)()
        ]
        raise ValueError(
            f"Weights & Biases cannot start a run ({'; '.join(wrong) or first_line(error)}): unset that variable"
        ) from error
    logger = RunLogger(experiment=run, log_model=log_model)
    run.define_metric("*", step_metric=STEP, step_sync=True)
    for key in BEST_SO_FAR:
        run.define_metric(key, step_metric=STEP, step_sync=True, summary="none")  # `note_best` sets it
    return logger


@rank_zero_only
def note_best(loggers: Iterable[Logger], scores: Mapping[str, float]) -> None:
    """Let the summary of Weights & Biases show these validation scores, of the best epoch so far.

    By itself the summary shows the last epoch, and an agent's search goes by the summary.
    """
    for logger in loggers:
        if isinstance(logger, RunLogger):
            logger.experiment.summary.update({key: scores[key] for key in BEST_SO_FAR if key in scores})


def csv_logger(run_dir: Path, identity: Identity, resume: bool) -> CSVLogger:
    """What is logged between epochs, as `csv/version_<n>/metrics.csv` below `run_dir`, n for each start."""
    return CSVLogger(save_dir=str(run_dir), name="csv")


def tensorboard_logger(run_dir: Path, identity: Identity, resume: bool) -> TensorBoardLogger:
    """Files of events in `tensorboard/` below `run_dir`, each start's beside those before."""
    return TensorBoardLogger(save_dir=str(run_dir), name="tensorboard", version="", default_hp_metric=False)


def mlflow_logger(
    run_dir: Path,
    identity: Identity,
    resume: bool,
    experiment: str = "hornn",
    tracking_uri: str | None = None,
) -> MLFlowLogger:
    """A run of MLflow on a server, or in `mlflow.db` below `run_dir`; each start is a run of its own."""
    return MLFlowLogger(
        experiment_name=experiment,
        run_name=project_name(identity),
        tracking_uri=tracking_uri or f"sqlite:///{run_dir.absolute() / 'mlflow.db'}",
        tags={"sweep": os.environ.get(IN_SWEEP, ""), "row": os.environ.get(IN_ROW, "")},
    )


def project_name(identity: Identity) -> str:
    """A run's name in a project: model, corpus, the run's name and its seed."""
    return "-".join([identity.choices["model"], identity.corpus, identity.name, str(identity.seed)])


def open_wandb() -> Any:
    """The module of Weights & Biases where this process has an open run of it, else None."""
    wandb = sys.modules.get("wandb")
    return None if wandb is None or wandb.run is None else wandb


def explain_lost_wandb(error: ConnectionError) -> None:
    """Raise ProcessLost where a connection failed while a run of Weights & Biases is open; else do nothing."""
    if open_wandb():
        raise ProcessLost(
            f"the process that writes for Weights & Biases has ended; {same_command()} continues, and logger=csv does "
            "without that process"
        ) from error


def end_logging(finished: bool) -> None:
    """End the run of Weights & Biases, if this process has one, as finished or as failed."""
    wandb = open_wandb()
    if wandb is None:
        return
    try:
        wandb.finish(exit_code=int(not finished))
    except Exception:  # of whatever kind; how the run ended counts
        with suppress(Exception):
            wandb.teardown()  # what would fail at the program's exit again
        if finished:
            print(
                "warning: the process that writes for Weights & Biases ended before the run, as on a full disk: its "
                "curves are not whole, and result.json is",
                file=sys.stderr,
            )
