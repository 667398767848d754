"""Builds a run from its config, trains it, tests it once, writes what came out."""

import fcntl
import importlib.metadata
import logging
import math
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import torch
import wandb
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import get_class, instantiate
from lightning.pytorch.loggers import CSVLogger, WandbLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hornn.allocator import keep_freed_memory
from hornn.callbacks import BEST, LAST, LiveProgress, RunKeeper
from hornn.cells.base import Cell, require_positive
from hornn.checkpoint import CARD, FORMAT, AtomicCheckpointIO, read_checkpoint
from hornn.data.text import TextDataModule
from hornn.data.vocabulary import Vocabulary
from hornn.heads import Head
from hornn.identity import CONFIG, config_hash, effective, run_folder
from hornn.module import TruncatedBptt
from hornn.network import LanguageModel, natural_width
from hornn.optim import DivergenceError, require_range
from hornn.result import read_result, write_atomically, write_result

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

console = Console()


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

    Raises ValueError or OSError, before any training, for a config that cannot run; ValueError if training
    diverges.
    """
    started = time.time()
    keep_freed_memory()
    quiet_libraries()
    run = prepare(cfg)
    result = {"status": "completed", **run.identity}
    finished = False
    try:
        run.trainer.fit(run.module, datamodule=run.data, ckpt_path=run.resume)
        run.module.load_state_dict(read_checkpoint(run.dir / BEST)["state_dict"])
        run.trainer.test(run.module, datamodule=run.data, verbose=False)
        finished = True
    except DivergenceError as error:
        result.update(status="diverged", error=diverged(error, run.module))
    finally:
        if wandb.run is not None:
            wandb.finish(exit_code=int(not finished))
    result.update(summarise(run, started))  # on every rank: its sums are over all of them
    if run.trainer.is_global_zero:
        write_result(run.dir, result)
    if result["status"] == "diverged":
        raise ValueError(result["error"])
    if run.trainer.is_global_zero:
        conclude(run.dir, result)
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
    module.card = {
        "format": FORMAT,
        "model": config["model"],
        "network": config["network"],
        "vocabulary": data.vocabulary.state(),
        "tokenizer": data.tokenizer.state(),
        "data": data.describe(),
        "data_config": config["data"],
        "config_hash": digest,
        "seed": cfg.seed,
    }
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
        announce(run_dir, identity, data, module.network, resume)
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


def plain(cfg: DictConfig) -> dict[str, Any]:
    """The config as resolved dicts, lists and numbers."""
    config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    assert isinstance(config, dict)
    return config  # type: ignore[return-value]


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


def lock_run(run_dir: Path) -> Any:
    """Make the run's folder and hold its lock until the process ends, however it ends."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        lock = (run_dir / ".lock").open("w")
    except OSError as error:
        raise OSError(f"run_dir {run_dir} is not writable ({error.strerror}): give run_dir=FOLDER") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(
            f"another process is working on {run_dir}: wait for it, or give another run_dir"
        ) from error
    return lock


def find_unfinished(run_dir: Path, digest: str, seed: int, overwrite: bool) -> Path | None:
    """The checkpoint to continue from, None for a fresh start.

    Raises ValueError where the folder holds a finished run, or a run of another config or seed.
    """
    if overwrite:
        return None
    if result := read_result(run_dir):
        score = f" at test perplexity {result['test_ppl']:.2f}" if result.get("test_ppl") else ""
        raise ValueError(f"{run_dir} holds a run that {result['status']}{score}: overwrite=true replaces it")
    if not (run_dir / LAST).exists():
        return None
    card = read_checkpoint(run_dir / LAST)[CARD]
    if (card["config_hash"], card["seed"]) != (digest, seed):
        raise ValueError(
            f"{run_dir} holds an unfinished run of config ({card['config_hash']}, seed {card['seed']}); "
            f"this is {digest}, seed {seed}: give another run_dir, or overwrite=true to replace it"
        )
    return run_dir / LAST


def remove_run(run_dir: Path) -> None:
    """Remove what an earlier run left; files that are not a run's stay."""
    for name in ("result.json", "metrics.csv", BEST, LAST, CONFIG):
        (run_dir / name).unlink(missing_ok=True)


def build_network(
    model: Mapping[str, Any], network: Mapping[str, Any], counts: Sequence[int]
) -> LanguageModel:
    """The language model of two plain config nodes and the counts of its words.

    Nothing else that a node names is called: the nodes may come from a checkpoint. Raises ValueError if one does
    not name a cell, a head or the network.
    """
    parts = {**network, "head": bound(network["head"], Head, "head"), "cell": bound(model, Cell, "model")}
    built: LanguageModel = bound(parts, LanguageModel, "network")(counts=counts)
    return built


def bound(node: Mapping[str, Any], kind: type, name: str) -> partial[Any]:
    """The class that a config node names, a subclass of `kind`, with the node's arguments bound."""
    target = get_class(node["_target_"])
    if not issubclass(target, kind):
        raise ValueError(
            f"{name}._target_ must name a {kind.__module__}.{kind.__name__}, got {node['_target_']}"
        )
    return partial(target, **{key: value for key, value in node.items() if not key.startswith("_")})


def check_cell(model: Mapping[str, Any]) -> None:
    """Build the cell once without memory, so that a size that cannot be is refused before anything is read."""
    cell = bound(model, Cell, "model")
    with torch.device("meta"):
        cell(input_size=natural_width(cell))


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


# -- what a person sees --------------------------------------------------------------------------------------


def announce(
    run_dir: Path,
    identity: Mapping[str, Any],
    data: TextDataModule,
    network: LanguageModel,
    resume: Path | None,
) -> None:
    tokens = ", ".join(f"{split} {count:,}" for split, count in data.describe()["tokens"].items())
    model, count = identity["model"], identity["num_parameters"]
    console.print(f"[bold]{model}[/] on [bold]{data.name}[/]: {count:,} parameters", highlight=False)
    console.print(f"  tokens: {tokens}; vocabulary {len(data.vocabulary):,}", highlight=False)
    kernels = ", native kernels" if network.native else ""
    console.print(
        f"  time loop {network.scan_backend}, output layer {network.head.precision}{kernels}", highlight=False
    )
    if network.missing:
        console.print(f"  {network.missing}", highlight=False, soft_wrap=True)
    if not data.has_split("valid"):
        console.print("  there is no third split: validation reads the test text", highlight=False)
    console.print(f"  {'continues in' if resume else 'writes to'} {run_dir}", highlight=False, soft_wrap=True)


def conclude(run_dir: Path, result: Mapping[str, Any]) -> None:
    unigram = result["unigram"]
    console.print(
        f"best epoch {result['best_epoch']}; the test split was scored once, with its weights",
        highlight=False,
    )
    console.print(f"{'perplexity':>12}  {'valid':>9}  {'test':>9}", style="bold", highlight=False)
    for row, valid, test in (
        (result["model"], result["valid_ppl"], result["test_ppl"]),
        ("unigram", unigram["valid_ppl"], unigram["test_ppl"]),
    ):
        console.print(f"{row:>12}  {valid:9.2f}  {test:9.2f}", highlight=False)
    console.print(f"{run_dir / 'result.json'}", highlight=False, soft_wrap=True)
    if (run_dir / "wandb").is_dir():
        console.print(f"browse: wandb leet {run_dir / 'wandb'}", highlight=False, soft_wrap=True)


def diverged(error: DivergenceError, module: TruncatedBptt) -> str:
    norms = [*module.grad_norms, *(record["max_grad_norm"] for record in module.records)]
    return (
        f"training diverged at step {module.global_step}: {error}; the largest gradient norm before was "
        f"{max(norms, default=math.nan):.4g}. Try a lower optimizer.lr, optimizer.clip_mode=norm with "
        "optimizer.clip=1, optimizer.max_norm=1, or model.activation=sigmoid"
    )


# -- the result ----------------------------------------------------------------------------------------------


def summarise(run: Run, started: float) -> dict[str, Any]:
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
        "wall_seconds": time.time() - started,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {key: value for key, value in data.describe().items() if key != "path"},
        "versions": versions(),
        **commit(),
        "config": effective(run.config),
    }


def peak_memory_mb(device: torch.device) -> float:
    """The most memory this process held: on the GPU where it trained on one, else resident in the host's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes there, in KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{device.type} ({name}, {torch.get_num_threads()} threads)"


def versions() -> dict[str, str]:
    names = ("hornn", "torch", "lightning", "hydra-core", "omegaconf", "wandb", "torchmetrics", "numpy")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}


def commit() -> dict[str, Any]:
    """The commit of the checkout that this program lies in and whether it had changes; null outside one."""
    here = Path(__file__).parent

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", here, *words], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}
