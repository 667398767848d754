"""Builds a run from its config, trains it, tests it once, writes what came out."""

import logging
import math
import os
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import torch
import wandb
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import instantiate
from lightning.pytorch.loggers import CSVLogger, WandbLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only
from omegaconf import DictConfig, OmegaConf

from hornn.build import build_network, check_cell, make_card
from hornn.callbacks import LiveProgress, RunKeeper
from hornn.checkpoint import CARD, AtomicCheckpointIO, read_checkpoint
from hornn.checks import require_positive, require_range
from hornn.console import announce, conclude, console
from hornn.counting import fit_counts
from hornn.data.text import TextDataModule
from hornn.data.vocabulary import Vocabulary
from hornn.identity import BEST, CONFIG, config_hash, effective, is_counted, plain, run_folder
from hornn.module import TruncatedBptt
from hornn.network import LanguageModel
from hornn.occupancy import find_unfinished, lock_run, remove_run
from hornn.optim import DivergenceError
from hornn.process import set_up_process
from hornn.provenance import Parts, commit, device_name, peak_memory_mb, versions
from hornn.result import write_atomically, write_result

# Arguments of the trainer with the one value under which every epoch reads and measures all of its text.
WHOLE = {
    "limit_train_batches": None,
    "limit_val_batches": None,
    "limit_test_batches": None,
    "overfit_batches": 0,
    "fast_dev_run": False,
    "accumulate_grad_batches": 1,
    "check_val_every_n_epoch": 1,
    "val_check_interval": None,
}


class Run(NamedTuple):
    """One run, ready to start: nothing that it can be refused for is still to come."""

    dir: Path
    resume: Path | None  # the checkpoint that it continues from
    lock: Any  # an open file whose lock keeps other processes off `dir`; None beside the first rank
    config: dict[str, Any]
    identity: dict[str, Any]  # what result.json says of it from the start
    data: TextDataModule
    module: TruncatedBptt
    trainer: lightning.Trainer


def train(cfg: DictConfig) -> None:
    """Train, test the best weights by validation once, write result.json; continue where a run was cut off.

    A model of counts is fitted instead (hornn.counting).
    Raises ValueError or OSError, before any training, for a config that cannot run; ValueError if training
    diverges.
    """
    if is_counted(cfg.model):
        fit_counts(cfg)
        return
    parts = Parts(commit())
    set_up_process()
    quiet_libraries()
    run = prepare(cfg)
    run.module.parts = parts
    result = {"status": "completed", **run.identity}
    finished = False
    try:
        run.trainer.fit(run.module, datamodule=run.data, ckpt_path=run.resume)
        run.module.load_state_dict(read_checkpoint(run.dir / BEST)["state_dict"])
        run.trainer.test(run.module, datamodule=run.data, verbose=False)
        finished = True
    except DivergenceError as error:
        result.update(status="diverged", error=diverged(error, run))
    finally:
        if wandb.run is not None:
            wandb.finish(exit_code=int(not finished))
    result.update(summarise(run))  # on every rank: its sums are over all of them
    if run.trainer.is_global_zero:
        write_result(run.dir, result)
    if result["status"] == "diverged":
        raise ValueError(result["error"])
    if run.trainer.is_global_zero:
        how = f"best epoch {result['best_epoch']}; the test split was scored once, with its weights"
        conclude(run.dir, result, how)
        run.lock.close()


# -- before training -----------------------------------------------------------------------------------------


def prepare(cfg: DictConfig) -> Run:
    """Build all that a run needs. What an earlier run left in its folder goes last, when nothing can fail."""
    config = plain(cfg)
    choices = HydraConfig.get().runtime.choices
    check_trainer(cfg.trainer)
    require_range("seed", cfg.seed, "from 0 to 4294967295", 0 <= cfg.seed < 2**32)
    check_cell(config["model"])
    lightning.seed_everything(cfg.seed, verbose=False)
    data: TextDataModule = instantiate(cfg.data)
    require_positive(chunks_per_batch=cfg.chunks_per_batch)
    data.chunks_per_batch = cfg.chunks_per_batch
    digest = config_hash(config)
    run_dir = run_folder(config, choices["model"], choices["data"])
    main = rank_zero_only.rank == 0  # type: ignore[attr-defined]
    data.prepare_data()
    data.setup()
    module = build_module(cfg, config, data)
    identity = {
        "model": choices["model"],
        "data": data.name,
        "seed": cfg.seed,
        "num_parameters": module.network.num_parameters,
        "config_hash": digest,
    }
    module.card = make_card(config, digest, data)
    trainer = build_trainer(cfg, run_dir)
    # What only the fit would refuse is refused here.
    optimizer = module.configure_optimizers()
    module.network.prepare(trainer.strategy.root_device)
    if cfg.cuda_graph:
        module.check_graph(trainer.strategy.root_device, trainer.world_size, optimizer)
    data.trainer = trainer
    data.setup()
    lock = lock_run(run_dir) if main else None
    resume = find_unfinished(run_dir, digest, cfg.seed, cfg.overwrite)
    about = {**identity, "cell": config["model"]}
    trainer.logger = instantiate(cfg.logger)(run_dir=run_dir, about=about, resume=bool(resume))
    if main:
        if not resume:
            remove_run(run_dir)
        write_atomically(run_dir / CONFIG, OmegaConf.to_yaml(OmegaConf.create(config)))
        trainer.logger.log_hyperparams({**config, **identity})
        size = f"{module.network.num_parameters:,} parameters"
        announce(run_dir, choices["model"], size, data, notes_on(module.network), bool(resume))
    HydraConfig.instance().cfg = None  # so that Lightning starts further ranks by this very command
    return Run(run_dir, resume, lock, config, identity, data, module, trainer)


def build_module(cfg: DictConfig, config: dict[str, Any], data: TextDataModule) -> TruncatedBptt:
    """The network with its training, from the weights of `init_from` where that is given."""
    network = build_network(config["model"], config["network"], data.vocabulary.counts)
    pretrained = start_from(network, cfg.init_from, data.vocabulary) if cfg.init_from else set()
    return TruncatedBptt(
        network,
        instantiate(cfg.optimizer),
        instantiate(cfg.schedule),
        cfg.loss_reduction,
        cfg.bptt_window,
        data.seq_len,
        cfg.weight_noise,
        pretrained,
        cfg.init_from_lr,
        cfg.cuda_graph,
    )


def build_trainer(cfg: DictConfig, run_dir: Path) -> lightning.Trainer:
    keeper = RunKeeper(run_dir, console, cfg.checkpoint_every, cfg.trainer.max_steps)
    trainer: lightning.Trainer = instantiate(
        cfg.trainer,
        max_steps=-1,  # RunKeeper counts
        callbacks=[keeper, *([LiveProgress(console)] if cfg.trainer.enable_progress_bar else [])],
        logger=False,
        plugins=[AtomicCheckpointIO()],
        default_root_dir=str(run_dir),
        _convert_="all",
    )
    return trainer


def quiet_libraries() -> None:
    """Leave out what the libraries print about themselves; their warnings about the run stay."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for about in (".*smaller than the logging interval.*", ".*isinstance.*LeafSpec.*"):
        warnings.filterwarnings("ignore", about)


def check_trainer(trainer: DictConfig) -> None:
    """Refuse devices that are not there and options under which an epoch would go unmeasured."""
    if trainer.accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise ValueError(
            f"trainer.accelerator={trainer.accelerator} needs a CUDA device, this machine has none: "
            "use trainer=cpu"
        )
    if HydraConfig.get().mode == RunMode.MULTIRUN and trainer.devices not in (1, "1"):
        raise ValueError(
            f"trainer.devices={trainer.devices} inside a multirun would train on a part of the data: "
            "start each run of several devices by itself"
        )
    for key, allowed in WHOLE.items():
        if trainer.get(key) not in (None, allowed):
            raise ValueError(
                f"trainer.{key}={trainer[key]} would leave data unread or updates uncounted: leave it out; "
                "trainer.max_steps makes a run short"
            )
    if trainer.max_epochs is not None and trainer.max_epochs != -1 and trainer.max_epochs < 1:
        raise ValueError(f"trainer.max_epochs must be >= 1, or -1 for no bound, got {trainer.max_epochs}")


def start_from(network: LanguageModel, path: str, vocabulary: Vocabulary) -> set[str]:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape; their names.

    The output layer starts afresh: in a deeper model it reads other features. Raises what `read_checkpoint`
    raises, and ValueError where vocabularies differ or no parameter matches.
    """
    checkpoint = read_checkpoint(Path(path))
    if checkpoint[CARD]["vocabulary"]["words"] != vocabulary.words:
        raise ValueError(
            f"init_from={path} has another vocabulary: give a checkpoint trained on the same data"
        )
    weights = {key.removeprefix("network."): value for key, value in checkpoint["state_dict"].items()}
    copied = set()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in weights and weights[name].shape == parameter.shape and not name.startswith("head."):
                parameter.copy_(weights[name])
                copied.add(name)
    if not copied - {"embedding.weight"}:
        raise ValueError(
            f"init_from={path} has no recurrent parameter of this model's names and shapes "
            f"({', '.join(name for name, _ in network.named_parameters())}): give a checkpoint of a related model"
        )
    return copied


TAG_LENGTH = 64  # that Weights & Biases allows


def wandb_logger(
    run_dir: Path, about: Mapping[str, Any], resume: bool, project: str = "hornn", offline: bool = True
) -> WandbLogger:
    """A Weights & Biases run below `run_dir`; its id comes from its hash, so that a resumed run continues its own.

    In a sweep its group is the sweep and its job type the row of the table, else its job type is the model. `about`
    holds what identifies the run, and as `cell` the arguments of the model, for `model` in W&B is a name. Agents of
    `wandb sweep` give their runs ids of their own.
    """
    if rank_zero_only.rank != 0:  # type: ignore[attr-defined]
        return WandbLogger(project=project)  # stays idle: only the first rank logs
    name = "-".join(str(about[key]) for key in ("model", "data", "config_hash", "seed"))
    sweep, row = os.environ.get("HORNN_SWEEP"), os.environ.get("HORNN_ROW")  # the launcher sets them
    paper, _, part = (sweep or "").rpartition("_")
    tags = {
        "paper": paper if part.startswith(("table", "figure")) else None,
        "table": sweep,
        **{key: about[key] for key in ("model", "data", "seed")},
    }
    try:
        run = wandb.init(
            project=project,
            name=name,
            id=name,
            group=sweep,
            job_type=row or about["model"],
            tags=[f"{key}={value}"[:TAG_LENGTH] for key, value in tags.items() if value is not None],
            config={"cell": about["cell"]},
            dir=run_dir,
            mode="offline" if offline else "online",
            resume="allow" if resume and not offline else None,
            reinit="finish_previous",  # that of the job before, in a multirun
            settings=wandb.Settings(silent=offline),  # online it prints the run's address
        )
    except wandb.Error as error:
        raise ValueError(
            f"Weights & Biases cannot start a run ({str(error).splitlines()[0]}): log in once with "
            "`wandb login`, or use logger=wandb_offline"
        ) from error
    return WandbLogger(experiment=run)


def csv_logger(run_dir: Path, about: object, resume: bool) -> CSVLogger:
    """What is logged between epochs, as `csv/version_<n>/metrics.csv` below `run_dir`, n for each start."""
    return CSVLogger(save_dir=str(run_dir), name="csv")


def notes_on(network: LanguageModel) -> list[str]:
    """What computes a network here, as a person wants to know it before a training."""
    kernels = ", native kernels" if network.native else ""
    how = f"time loop {network.scan_backend}, output layer {network.head.precision}{kernels}"
    return [how, *([network.missing] if network.missing else [])]


def diverged(error: DivergenceError, run: Run) -> str:
    """What happened and what to try: options that this run has, at values that it did not have."""
    module, optimizer, cell = run.module, run.config["optimizer"], run.config["model"]
    norms = [*module.grad_norms, *(record["max_grad_norm"] for record in module.records)]
    remedies = [f"an optimizer.lr below {optimizer['lr']:g}"]
    if "clip" in optimizer and (optimizer["clip_mode"] != "norm" or (optimizer["clip"] or math.inf) > 1):
        remedies.append("optimizer.clip_mode=norm with optimizer.clip=1")
    if "max_norm" in optimizer and optimizer["max_norm"] is None:
        remedies.append("optimizer.max_norm=1")
    if cell.get("activation") not in (None, "sigmoid"):
        remedies.append("model.activation=sigmoid")
    return (
        f"training diverged at step {module.global_step}: {error}; the largest gradient norm before was "
        f"{max(norms, default=math.nan):.4g}. Try {', or '.join(remedies)}"
    )


# -- the result ----------------------------------------------------------------------------------------------


def summarise(run: Run) -> dict[str, Any]:
    """All of result.json that comes out of the run rather than out of its config."""
    module, data, trainer = run.module, run.data, run.trainer
    records, best = module.records, module.best
    tested = module.tokens["test"] > 0
    seconds = sum(record["seconds"] for record in records)
    epochs = records[-1]["epoch"] if records else 0
    device = trainer.strategy.root_device
    return {
        "valid_ppl": best["valid_ppl"] if best else None,
        "test_ppl": module.mean_ppl("test") if tested else None,
        "epochs": epochs,
        "best_epoch": best["epoch"] if best else None,
        "seconds_per_epoch": seconds / epochs if epochs else None,
        "tokens_per_second": epochs * data.describe()["tokens"]["train"] / seconds if seconds else None,
        "peak_memory_mb": peak_memory_mb(device),
        "unigram": {f"{split}_ppl": data.unigram_ppl(split) for split in ("valid", "test")},
        "metrics": records,
        "evaluation": {
            "batch_size": data.eval_batch_size,
            "seq_len": data.seq_len,
            "state": "carried",
            "test_tokens": module.tokens["test"],
        },
        "device": device_name(device),
        "dtype": {"weights": "fp32", "output_layer_in_training": module.network.head.precision},
        "backend": module.network.scan_backend,
        "native_kernels": module.network.native,
        "world_size": trainer.world_size,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {key: value for key, value in data.describe().items() if key != "path"},
        "versions": versions(),
        **module.parts.summary(),
        "config": effective(run.config),
    }
