"""Builds a network's run from its config, trains it, tests it once, writes what came out."""

import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import numpy as np
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins.environments import LightningEnvironment
from omegaconf import DictConfig

from hornn.build import build_data, build_network, call, check_cell, check_head, check_memory, check_plain
from hornn.card import make_card
from hornn.checks import require_seed
from hornn.contract import check_contract
from hornn.data.base import Data, Judgement, Stream
from hornn.data.sequences import SequenceStream
from hornn.module import TruncatedBptt
from hornn.network import SequenceModel
from hornn.optim.divergence import DivergenceError, require_finite_loss
from hornn.run.announce import console
from hornn.run.callbacks import build_callbacks, samples_of, why_stopped
from hornn.run.checkpoint_io import AtomicCheckpointIO
from hornn.run.code import CODE
from hornn.run.composed import as_dict
from hornn.run.continue_from import carry_over
from hornn.run.count import count
from hornn.run.folder import open_run, require_elsewhere, require_launched
from hornn.run.identity import LAST, Identity, identify, require_same_text, weights_given
from hornn.run.keeper import RunKeeper
from hornn.run.loggers import find_loggers
from hornn.run.process import set_up_process
from hornn.run.progress import LiveProgress
from hornn.run.provenance import Starts, circumstances, commit
from hornn.run.start_from import Taken, describe_start, start_of
from hornn.run.termination import (
    EndAtOnce,
    end_together,
    explain_lost_rank,
    heed_from_the_start,
    leave_to_first,
)
from hornn.run.time_limit import TimeLimit
from hornn.run.trainer_options import check_trainer, is_one_process
from hornn.shown import first_line
from hornn.use.posteriors import log_probs_of


class Training(NamedTuple):
    """All that a run of a network needs; only its folder can still be a reason to refuse it."""

    data: Data
    seed: int
    module: TruncatedBptt
    trainer: lightning.Trainer
    keeper: RunKeeper

    def stream(self, split: str) -> Stream:
        """This process's share of a split."""
        return self.data.stream(split, self.trainer.global_rank, self.trainer.world_size, self.seed)

    def log_probs(self, split: str) -> list[np.ndarray]:
        """What the network says of each of a split's sequences, all of them in this process."""
        stream = self.data.stream(split)
        if not isinstance(stream, SequenceStream):
            raise ValueError(
                f"{self.data.name} is one sequence, too long for all its log_probs: see Data.judge"
            )
        self.module.to(self.trainer.strategy.root_device)  # Lightning has put it on the CPU by now
        return log_probs_of(self.module.network, stream)


def train(cfg: DictConfig) -> None:
    """Train, test the best weights by validation once, write result.json; continue where a run was cut off.

    A model of counts is counted instead (hornn.run.count).
    Raises ValueError or OSError, before any training, for a config that cannot run; ValueError if training
    diverges.
    """
    config, job = as_dict(cfg), HydraConfig.get()
    seed = config["seed"]
    require_seed(seed)
    identity = identify(job.runtime.choices, config)
    require_launched(identity)
    starts = Starts({**commit(), CODE: dict(identity.code)}, job.overrides.task)
    require_elsewhere(identity, weights_given(config))
    if config["continue_from"] is not None and (identity.counted or config["overwrite"]):
        anew = "leave out overwrite=true and give run_dir=FOLDER, or leave out continue_from="
        remedy = "this model is counted: leave the word out" if identity.counted else anew
        raise ValueError(f"continue_from= trains a network in a folder that holds no run yet: {remedy}")
    if identity.counted:
        count(config, identity, starts)
        return
    if job.mode == RunMode.MULTIRUN and config["trainer"].get("devices") not in (1, "1"):
        raise ValueError(
            f"trainer.devices={config['trainer']['devices']} inside a multirun would train on a part of the data: "
            "start each run of several devices by itself"
        )
    set_up_process()
    quiet_libraries()
    open_loggers = find_loggers(config["logger"])
    heed_from_the_start(is_one_process(config["trainer"]))
    training = prepare(config, identity, starts)
    data, _, module, trainer, _ = training
    if trainer.is_global_zero and config["continue_from"] is not None:
        carry_over(Path(str(config["continue_from"])), identity, data)
    with (
        end_together(trainer),
        open_run(identity, data, open_loggers, config["overwrite"], trainer.global_rank) as run,
    ):
        trainer.loggers = run.loggers
        HydraConfig.instance().cfg = None  # so that Lightning starts further ranks by this very command
        run.begin(module.network.num_parameters, config, starts.program)
        run.announce(f"{module.network.num_parameters:,} weights", notes_on(training))
        # processes that a cluster starts at once look there while the first one still carries over
        resume = run.resume if config["continue_from"] is None else run.dir / LAST
        try:
            training.keeper.require_held = run.require_held
            fit(training, resume)
            module.load_state_dict(run.best_weights())
            trainer.test(module, training.stream("test"), verbose=False)
            require_finite_loss("test", module.tally("test").mean_nll)
        except DivergenceError as error:
            # Losses and gradients are sums over all ranks, so every rank diverges at the same update.
            leave_to_first(trainer)
            run.fail(describe_divergence(error, training, config), summarise(training))
        except RuntimeError as error:
            explain_lost_rank(error, trainer)
            raise
        finally:
            show_profile(trainer)
        figures = summarise(training)  # on every rank: its sums are over all of them
        judgement = data.judge(training.log_probs) if run.main else Judgement({}, [])
        how = "\n".join([describe_end(training, figures), *judgement.lines])
        run.finish({**figures, **judgement.figures}, how)


def prepare(config: Mapping[str, Any], identity: Identity, starts: Starts) -> Training:
    """Build all that a training needs, and refuse what only the fit would."""
    check_trainer(config["trainer"])
    check_plain(config)
    check_cell(config["model"], identity.choices["model"])
    lightning.seed_everything(identity.seed, verbose=False)
    data = build_data(config["data"])
    check_head(config, identity.choices, data)
    data.prepare_data()
    data.setup()
    require_same_text(identity, config["data"])
    data.stream("train")  # refuses columns and chunks that cannot be
    check_memory(config, data.counts, 3, data.input_width)
    folders = [identity.folder, *([Path(str(config["continue_from"]))] if config["continue_from"] else [])]
    left_off = next((folder / LAST for folder in folders if (folder / LAST).is_file()), None)
    network = build_network(config, data.counts, data.input_width)
    taken = start_of(network, config, data.interface(), None if config["overwrite"] else left_off)
    module = build_module(config, network, data, taken)
    check_contract(module.network.cells[0])  # type: ignore[arg-type]  # others are of its class
    max_steps = config["trainer"].get("max_steps", -1)
    keeper = RunKeeper(identity.folder, starts, config["checkpoint_every"], max_steps)
    callbacks = build_callbacks(config["callbacks"] or {}, data)
    trainer = build_trainer(config, keeper, make_card(identity.to_dict(), data), callbacks)
    if trainer.local_rank >= trainer.num_devices:
        raise ValueError(
            f"LOCAL_RANK={trainer.local_rank} says that this is process {trainer.local_rank + 1} of this machine, and "
            f"trainer.devices makes {trainer.num_devices}: give more trainer.devices, or unset LOCAL_RANK"
        )
    module.configure_optimizers()
    device = trainer.strategy.root_device
    network.prepare(device)
    starts.compute_on(device, network.head.precision, network.loop_precision)
    return Training(data, identity.seed, module, trainer, keeper)


def build_module(
    config: Mapping[str, Any], network: SequenceModel, data: Data, pretrained: Taken | None = None
) -> TruncatedBptt:
    """The network with its training. pretrained: the weights that another run gave."""
    return TruncatedBptt(
        network,
        call(config, "optimizer"),
        call(config, "schedule"),
        config["loss_reduction"],
        config["bptt_window"],
        data.seq_len,
        config["weight_noise"],
        config["recurrent_dropout"],
        pretrained,
        config["init_from_lr"],
        data.units,
    )


def build_trainer(
    config: Mapping[str, Any],
    keeper: RunKeeper,
    card: Mapping[str, Any],
    callbacks: Sequence[Callback] = (),
) -> lightning.Trainer:
    """The trainer with these callbacks of the config beside the program's own."""
    settings = config["trainer"]
    shown = [LiveProgress(console, keeper)] if settings.get("enable_progress_bar", True) else []
    limit = [TimeLimit(settings["max_time"], keeper)] if settings.get("max_time") is not None else []
    # A run of one process is whole wherever a cluster starts it, one task of several with a run each included.
    cluster = [LightningEnvironment()] if is_one_process(settings) else []
    trainer: lightning.Trainer = call(
        config,
        "trainer",
        max_steps=-1,  # the keeper counts
        max_time=None,
        callbacks=[keeper, EndAtOnce(), *shown, *callbacks, *limit],
        logger=False,
        plugins=[AtomicCheckpointIO(card), *cluster],
        default_root_dir=str(keeper.folder),
    )
    return trainer


def quiet_libraries() -> None:
    """Leave out what the libraries print about themselves; their warnings about the run stay.

    What the module logs is of all ranks already: `sync_dist` would only make them wait for one another.
    """
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    ours = (".*smaller than the logging interval.*", ".*isinstance.*LeafSpec.*", ".*sync_dist=True.*")
    for about in (*ours, ".*`srun` command is available.*", ".*callbacks used to create the checkpoint.*"):
        warnings.filterwarnings("ignore", about)


def fit(training: Training, resume: Path | None) -> None:
    """Train, from where a checkpoint left off if there is one. ValueError for one that lacks a part of a run."""
    _, _, module, trainer, keeper = training
    try:
        trainer.fit(module, training.stream("train"), training.stream("valid"), ckpt_path=resume)
    except (AttributeError, IndexError, KeyError, TypeError, RuntimeError) as error:
        explain_lost_rank(error, trainer)
        if resume is None or keeper.began or isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(
            f"the run cannot go on from {resume} ({first_line(error)}): mend the cause; only where the checkpoint "
            "itself is to blame, overwrite=true starts anew"
        ) from error


def notes_on(training: Training) -> list[str]:
    """What computes the network on this machine, for a person who is about to start a training."""
    network, processes = training.module.network, training.trainer.world_size
    batch_size = training.data.batch_size
    kernels = ", native kernels" if network.native else ""
    loop = f"time loop {network.scan_backend} in {network.loop_precision}"
    notes = [f"{loop}, output layer in {network.head.precision}{kernels}"]
    if taken := training.module.pretrained:
        notes.append(describe_start(network, taken, training.module.pretrained_lr))
    if network.missing:
        notes.append(network.missing)
    if processes > batch_size:
        idle = processes - batch_size
        notes.append(
            f"{idle} of {processes} processes have nothing to train on: data.batch_size is {batch_size}"
        )
    return notes


def describe_divergence(error: DivergenceError, training: Training, config: Mapping[str, Any]) -> str:
    """What happened and what to try: options that this run has, at values that it did not have."""
    module, optimizer = training.module, config["optimizer"]
    if not module.global_step:
        return (
            f"training diverged at update 0: {error}; no learning rate is to blame, as there was no update. See the "
            f"equations of {type(module.network.cells[0]).__name__} and the data, or try a network.init_std below "
            f"{config['network']['init_std']:g}"
        )
    # an optimizer of the user's own may measure no gradient, and have other keys
    norms = [*module.grad_norms, *(record.get("max_grad_norm", 0.0) for record in training.keeper.records)]
    largest = f"; the largest gradient norm before was {max(norms):.4g}" if any(norms) else ""
    remedies = [
        f"an optimizer.lr below {optimizer['lr']:g}" if "lr" in optimizer else "a lower learning rate"
    ]
    clips = {"clip", "clip_mode"} <= optimizer.keys()
    if clips and (optimizer["clip_mode"] != "norm" or (optimizer["clip"] or math.inf) > 1):
        remedies.append("optimizer.clip_mode=norm with optimizer.clip=1")
    if "max_norm" in optimizer and optimizer["max_norm"] is None:
        remedies.append("optimizer.max_norm=1")
    if config["model"].get("activation") not in (None, "sigmoid"):
        remedies.append("model.activation=sigmoid")
    step = module.global_step - error.behind
    return f"training diverged at update {step}: {error}{largest}. Try {', or '.join(remedies)}"


def describe_end(training: Training, figures: Mapping[str, Any]) -> str:
    """Why training ended where its own bounds do not say so, and how the test split was scored."""
    keeper = training.keeper
    asked = keeper.stopped and training.trainer.global_step != keeper.max_steps
    early = why_stopped(training.trainer.callbacks, asked)  # type: ignore[attr-defined]
    stopped = f"ended by its schedule: {keeper.reason}" if keeper.reason else early
    how = f"best epoch {figures['best_epoch']}; the test split was scored once, with its weights"
    return f"{stopped}\n{how}" if stopped else how


def show_profile(trainer: lightning.Trainer) -> None:
    """Print the report of the profiler, if there is one: Lightning logs it, where nothing is shown here."""
    report = trainer.profiler.summary()  # type: ignore[attr-defined]
    if report and trainer.is_global_zero:
        console.print(report, soft_wrap=True)


def summarise(training: Training) -> dict[str, Any]:
    """All of result.json that comes out of the run rather than out of its config."""
    data, _, module, trainer, keeper = training
    records, best = keeper.records, keeper.best
    tested = module.tally("test").targets
    seconds = sum(record["seconds"] for record in records)
    epochs = records[-1]["epoch"] if records else 0
    read = records[-1]["step"] / len(training.stream("train")) if records else 0  # the same, not rounded
    return {
        "num_parameters": module.network.num_parameters,
        **{key: best.get(key) if best else None for key in module.figures("valid")},
        **{key: value if tested else None for key, value in module.figures("test").items()},
        "epochs": epochs,
        "best_epoch": best["epoch"] if best else None,
        "seconds_per_epoch": seconds / read if read else None,
        "tokens_per_second": read * data.size("train") / seconds if seconds else None,
        "metrics": records,
        "evaluation": {
            "batch_size": data.eval_batch_size,
            "seq_len": data.seq_len,
            "state": "carried",
            "test_tokens": tested,
        },
        "dtype": {
            "weights": "fp32",
            **{
                f"{part}_in_training": ", then ".join(kinds)
                for part, kinds in keeper.starts.precisions().items()
            },
        },
        "backend": module.network.scan_backend,
        "native_kernels": module.network.native,
        "world_size": trainer.world_size,
        **circumstances(data, trainer.strategy.root_device),
        **samples_of(trainer.callbacks),  # type: ignore[attr-defined]
        **keeper.starts.summary(),
    }
