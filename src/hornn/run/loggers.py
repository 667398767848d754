"""What a run logs to between its epochs: Weights & Biases, or a file. The files of conf/logger name these functions."""

import os
import sys
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger, WandbLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from hornn.run.identity import Identity

TAG_LENGTH = 64  # that Weights & Biases allows


def wandb_logger(
    run_dir: Path, identity: Identity, resume: bool, project: str = "hornn", offline: bool = True
) -> WandbLogger:
    """A Weights & Biases run below `run_dir`; its id has the run's name, so that a resumed run continues its own.

    In a sweep its group is the sweep and its job type the row of the table, else its job type is the model. The
    arguments of the model stand under `cell`, for `model` in W&B is the word that chose it. Agents of `wandb sweep`
    give their runs ids of their own.
    """
    import wandb  # half a second, that no other logger need wait for

    if rank_zero_only.rank != 0:  # type: ignore[attr-defined]
        return WandbLogger(project=project)  # stays idle: only the first rank logs
    words = {"model": identity.choices["model"], "data": identity.corpus, "seed": str(identity.seed)}
    name = "-".join([words["model"], words["data"], identity.name, words["seed"]])
    sweep, row = os.environ.get("HORNN_SWEEP"), os.environ.get("HORNN_ROW")  # the launcher sets them
    paper, _, part = (sweep or "").rpartition("_")
    tags = {
        "paper": paper if part.startswith(("table", "figure")) else None,
        "table": sweep,
        **words,
    }
    try:
        run = wandb.init(
            project=project,
            name=name,
            id=name,
            group=sweep,
            job_type=row or words["model"],
            tags=[f"{key}={value}"[:TAG_LENGTH] for key, value in tags.items() if value is not None],
            config={"cell": identity.config["model"]},
            dir=run_dir,
            mode="offline" if offline else "online",
            resume="allow" if resume and not offline else None,
            reinit="finish_previous",  # the run of the job before, in a multirun
            settings=wandb.Settings(silent=offline),  # online it prints the run's address
        )
    except wandb.Error as error:
        raise ValueError(
            f"Weights & Biases cannot start a run ({str(error).splitlines()[0]}): log in once with "
            "`wandb login`, or use logger=wandb_offline"
        ) from error
    return WandbLogger(experiment=run)


def csv_logger(run_dir: Path, identity: Identity, resume: bool) -> CSVLogger:
    """What is logged between epochs, as `csv/version_<n>/metrics.csv` below `run_dir`, n for each start."""
    return CSVLogger(save_dir=str(run_dir), name="csv")


def end_logging(finished: bool) -> None:
    """End the run of Weights & Biases, if this process has one, as finished or as failed."""
    wandb = sys.modules.get("wandb")
    if wandb is not None and wandb.run is not None:
        wandb.finish(exit_code=int(not finished))
