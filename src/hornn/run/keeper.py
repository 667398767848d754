"""Keeps a training on disk: its checkpoints, the record of each epoch, and all that a resumed run needs."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Checkpoint

from hornn.checkpoint import read_checkpoint, require_plain
from hornn.module import TruncatedBptt
from hornn.optim.adaptive import AveragedSGD
from hornn.optim.descent import ClippedOptimizer
from hornn.optim.divergence import require_finite_loss
from hornn.optim.schedules import Decision
from hornn.run.announce import console, describe_epoch, explain_epochs
from hornn.run.epochs import ELAPSED, Epoch, write_epochs
from hornn.run.identity import BEST, LAST
from hornn.run.loggers import note_best
from hornn.run.provenance import Starts, peak_memory_mb

PAYLOAD = "training"  # the key of a checkpoint's part for a resumed run
KINDS = {"records": list, "starts": list, "stopped": bool, "seconds": float, "schedule": dict}  # of that part
# Of each epoch: what a result is made of.
MEASURED = ("epoch", "step", "valid_nll", "seconds")


class Clock:
    """The seconds that a training takes, without validation and the writing of checkpoints."""

    def __init__(self) -> None:
        self.past = 0.0
        self.since: float | None = None  # it stands

    def start(self) -> None:
        if self.since is None:
            self.since = time.perf_counter()

    def stop(self) -> None:
        self.past, self.since = self.seconds, None

    @property
    def seconds(self) -> float:
        return self.past + (time.perf_counter() - self.since if self.since is not None else 0.0)


class RunKeeper(Checkpoint):
    """Keeps a run on disk: `last.ckpt` to resume from, `best.ckpt` by validation, `metrics.csv`.

    `last.ckpt` is written every `every_n_steps` updates (0: only when an epoch ends) and at each epoch's end,
    after validation and after the schedule has had its say. `max_steps` (-1: no bound) ends training after
    that many updates. Lightning is not given `max_steps`: where Lightning counts steps, a run resumed from an epoch's
    end begins with an epoch of no length.

    records: of the epochs so far; best: the one with the lowest validation loss. starts: of this run.
    Raises ValueError for every_n_steps < 0 or max_steps < -1 or 0; DivergenceError for a validation loss that is
    not finite.
    """

    def __init__(self, folder: Path, starts: Starts, every_n_steps: int = 0, max_steps: int = -1) -> None:
        if every_n_steps < 0:
            raise ValueError(f"checkpoint_every must be >= 0 updates, got {every_n_steps}")
        if max_steps < -1 or max_steps == 0:
            raise ValueError(f"trainer.max_steps must be >= 1 update, or -1 for no bound, got {max_steps}")
        self.folder = folder
        self.starts = starts
        self.every_n_steps = every_n_steps
        self.max_steps = max_steps
        self.records: list[Epoch] = []
        self.best: Epoch | None = None
        self.began = False  # an epoch, here and now: what a checkpoint brought was whole
        self.stopped = False  # training is over, though trainer.max_epochs may not be reached
        self.reason = ""  # of its schedule, where that ended the training
        self.explained = False  # what an epoch's line shows
        self.require_held: Callable[[], None] = lambda: None  # raises where the folder is no more this run's
        self.clock = Clock()  # of the running epoch
        self.random = torch.get_rng_state()
        self.stream: dict[str, Any] | None = None  # where a checkpoint left the stream of training

    def setup(self, trainer: lightning.Trainer, module: Any, stage: str) -> None:
        """Go on with the random numbers where the network's first weights ended, as a process alone does.

        Lightning sets the seed once more in a run of several processes.
        """
        if stage == "fit":
            torch.set_rng_state(self.random)

    def on_train_start(self, trainer: lightning.Trainer, module: Any) -> None:
        if self.stream is not None:  # Lightning brings it back in the midst of an epoch alone
            trainer.train_dataloader.load_state_dict(self.stream)  # type: ignore[union-attr]
        self.began = True
        trainer.should_stop = self.stopped
        self.saved_at = trainer.global_step

    def on_train_batch_start(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        self.clock.start()

    def on_train_batch_end(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        if trainer.global_step == self.max_steps:
            trainer.should_stop = self.stopped = True
            return
        due = (
            self.every_n_steps
            and trainer.global_step // self.every_n_steps > self.saved_at // self.every_n_steps
        )
        self.saved_at = trainer.global_step
        if due and not self.closes_epoch(trainer):
            self.save(trainer, LAST)

    def save(self, trainer: lightning.Trainer, name: str, weights_only: bool = False) -> None:
        self.require_held()
        trainer.save_checkpoint(self.folder / name, weights_only=weights_only)

    def closes_epoch(self, trainer: lightning.Trainer) -> bool:
        """Whether the update that was just made is the last one of its epoch, or of the run."""
        last = trainer.should_stop or trainer.global_step == self.max_steps
        return last or trainer.fit_loop.epoch_loop._num_ready_batches_reached()

    def on_validation_start(self, trainer: lightning.Trainer, module: Any) -> None:
        module.settle()
        self.clock.stop()

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TruncatedBptt)
        self.require_held()
        record, decision = self.close_epoch(trainer, module)
        if is_best := record is self.best:
            module.swap_averages()
            self.save(trainer, BEST, weights_only=True)
            module.swap_averages()
        # after the best epoch the weights in hand are the best ones, unless best.ckpt holds averages
        if decision.restore and (not is_best or isinstance(module.optimizer, AveragedSGD)):
            module.restore(read_checkpoint(self.folder / BEST)["state_dict"])
        # a callback may have asked for the end, too
        self.reason = decision.stop
        trainer.should_stop = self.stopped = self.stopped or bool(decision.stop) or trainer.should_stop
        module.tally("valid").clear()
        if trainer.is_global_zero:  # before last.ckpt, behind which the last epoch is not run again
            write_epochs(self.folder, self.records)
        self.save(trainer, LAST)
        if trainer.is_global_zero:
            lines = [] if self.explained else [explain_epochs(module.units)]
            self.explained = True
            for line in [*lines, describe_epoch(record, module.units, is_best)]:
                console.print(line, soft_wrap=True)

    def close_epoch(self, trainer: lightning.Trainer, module: TruncatedBptt) -> tuple[Epoch, Decision]:
        """Record the epoch that training and validation have just finished; what the schedule asks for."""
        self.clock.stop()
        valid_nll = require_finite_loss("validation", module.tally("valid").mean_nll)
        step = trainer.global_step
        epoch = step / len(trainer.train_dataloader)  # type: ignore[arg-type]
        norms = module.grad_norms  # an optimizer of the user's own may measure none
        record: Epoch = {
            "epoch": int(epoch) if epoch.is_integer() else round(epoch, 4),
            "step": step,
            "lr": module.learning_rate,
            **module.figures("train"),
            **module.figures("valid"),
            **({"grad_norm": sum(norms) / len(norms), "max_grad_norm": max(norms)} if norms else {}),
            **module.factors,
            "seconds": self.clock.seconds,
            "tokens_per_second": self.speed(module),
        }
        self.records.append(record)
        if self.best is None or record["valid_nll"] < self.best["valid_nll"]:
            self.best = record
        device = trainer.strategy.root_device
        measured = {key: record[key] for key in ("epoch", "lr", "seconds", "tokens_per_second")}
        measured[ELAPSED] = sum(each["seconds"] for each in self.records)  # a resumed run goes on counting
        gradient = {"train/max_grad_norm": max(norms)} if norms else {}
        module.report(
            {
                **measured,
                **module.scores("train"),
                **module.scores("valid"),
                **gradient,
                **module.factors,
                "memory_mb": peak_memory_mb(device),
            }
        )
        best = self.best["valid_nll"], self.best.get("valid_accuracy")
        note_best(trainer.loggers, module.units.logged("valid", *best))
        module.tally("train").clear()
        module.grad_norms = []
        self.clock = Clock()
        return record, module.schedule.decide(len(self.records), step, valid_nll)

    def speed(self, module: TruncatedBptt) -> float:
        """Targets per second of training so far in the running epoch, over all ranks."""
        seconds = self.clock.seconds
        return module.tally("train").targets / seconds if seconds else 0.0

    def on_save_checkpoint(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        assert isinstance(module, TruncatedBptt)
        module.settle()
        self.clock.stop()
        device = trainer.strategy.root_device
        checkpoint[PAYLOAD] = {
            **module.carried(),
            "pretrained": dict(module.pretrained),
            "records": self.records,
            "best": self.best,
            "stopped": self.stopped,
            "reason": self.reason,
            "seconds": self.clock.seconds,
            "starts": self.starts.all(),
            "schedule": module.schedule.state_dict(),
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        }

    def on_load_checkpoint(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        assert isinstance(module, TruncatedBptt)
        saved = checkpoint[PAYLOAD]
        check_whole(self.folder / LAST, checkpoint, module)
        require_alike(checkpoint["loops"]["fit_loop"], trainer.fit_loop.state_dict())
        self.stream = checkpoint["loops"]["fit_loop"]["state_dict"]["combined_loader"][0]
        module.carry_on(saved)
        self.records, self.best, self.stopped = saved["records"], saved["best"], saved["stopped"]
        self.reason = str(saved.get("reason", ""))  # checkpoints of earlier versions have none
        # Of the best epoch before a newer best.ckpt the weights are gone: the epoch that is run again takes its place,
        # also where a GPU computes it to other digits.
        if self.best and read_checkpoint(self.folder / BEST)["global_step"] > self.best["step"]:
            self.best = None
        self.clock.past = saved["seconds"]
        self.starts.past = saved["starts"]
        for part, before in self.starts.other_precisions().items() if trainer.is_global_zero else ():
            console.print(f"  the {part.replace('_', ' ')} was in {before} so far")
        if trainer.is_global_zero and (other := self.starts.other_code()):
            said = f"  warning: it goes on by other code ({other}): overwrite=true starts anew by this code"
            console.print(said, soft_wrap=True)
        module.schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])
        device, random_gpu = trainer.strategy.root_device, saved["random_gpu"]
        # a run that comes from a CPU has none, and goes on from its seed
        if device.type == "cuda" and random_gpu is not None:
            torch.cuda.set_rng_state(random_gpu, device)


def check_whole(path: Path, checkpoint: Mapping[str, Any], module: torch.nn.Module) -> None:
    """Raise KeyError, TypeError or ValueError where a part that a resumed run needs is absent or of another kind."""
    saved, kept = checkpoint[PAYLOAD], module.state_dict()
    for name, weight in checkpoint["state_dict"].items():
        require_plain(path, name, weight, kept[name].dtype)
    if len(checkpoint["optimizer_states"]) != 1:
        raise KeyError("the state of the optimizer")
    kind = getattr(getattr(module, "build_optimizer", None), "func", None)
    if isinstance(kind, type) and issubclass(kind, ClippedOptimizer):  # a user's own may keep other shapes
        shapes = {(), (1,), *(tuple(weight.shape) for weight in kept.values())}
        for state in checkpoint["optimizer_states"][0]["state"].values():
            if not all(
                tuple(part.shape) in shapes for part in state.values() if isinstance(part, torch.Tensor)
            ):
                raise TypeError("the state of the optimizer has the shapes of another model")
    if saved["best"] is not None and saved["best"] not in saved["records"]:
        raise KeyError("the record of the best epoch")
    parts: list[tuple[Any, Any]] = [
        (checkpoint["loops"], dict),
        *((saved[key], kind) for key, kind in KINDS.items()),
    ]
    epochs = [*saved["records"], *([saved["best"]] if saved["best"] is not None else [])]
    parts += [(record[key], int | float) for record in epochs for key in MEASURED]
    for start in saved["starts"]:
        parts += [(start["seconds"], int | float), (start["dirty"], bool | None)]
    for part, kind in parts:
        if not isinstance(part, kind):
            raise of_another_kind(part)


def require_alike(held: Any, fresh: Any) -> None:
    """Raise TypeError where a number of the training's loops, by which updates are counted, is none in a checkpoint."""
    if isinstance(fresh, dict) and isinstance(held, dict):
        for key in fresh.keys() & held.keys():
            require_alike(held[key], fresh[key])
    elif isinstance(fresh, dict | int) and type(held) is not type(fresh):
        raise of_another_kind(held)


def of_another_kind(part: Any) -> TypeError:
    return TypeError(f"{part!r:.80} stands where another kind of value belongs")
