"""What happens around the training loop: checkpoints, the record of each epoch, what a person sees."""

import csv
import io
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Checkpoint, ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hornn.checkpoint import read_checkpoint
from hornn.identity import BEST, LAST
from hornn.module import Record, TruncatedBptt
from hornn.result import write_atomically


class RunKeeper(Checkpoint):
    """Keeps a run on disk: `last.ckpt` to resume from, `best.ckpt` by validation, `metrics.csv`.

    `last.ckpt` is written every `every_n_steps` updates (0: only when an epoch ends) and at each epoch's end,
    after validation and after the schedule has had its say. `max_steps` (-1: no bound) ends training after
    that many updates. Lightning is not given it: where Lightning counts steps, a run resumed from an epoch's
    end begins with an epoch of no length. Raises ValueError for every_n_steps < 0 or max_steps < -1 or 0.
    """

    def __init__(self, run_dir: Path, console: Console, every_n_steps: int, max_steps: int = -1) -> None:
        if every_n_steps < 0:
            raise ValueError(f"checkpoint_every must be >= 0 updates, got {every_n_steps}")
        if max_steps < -1 or max_steps == 0:
            raise ValueError(f"trainer.max_steps must be >= 1 update, or -1 for no bound, got {max_steps}")
        self.run_dir = run_dir
        self.console = console
        self.every_n_steps = every_n_steps
        self.max_steps = max_steps

    def on_train_start(self, trainer: lightning.Trainer, module: Any) -> None:
        trainer.should_stop = module.stopped
        module.max_updates = self.max_steps
        self.saved_at = trainer.global_step

    def on_train_batch_end(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        if trainer.global_step == self.max_steps:
            trainer.should_stop = module.stopped = True
            return
        due = (
            self.every_n_steps
            and trainer.global_step // self.every_n_steps > self.saved_at // self.every_n_steps
        )
        self.saved_at = trainer.global_step
        if due and not trainer.fit_loop.epoch_loop._num_ready_batches_reached():
            trainer.save_checkpoint(self.run_dir / LAST)

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TruncatedBptt)
        decision = module.close_epoch()
        record = module.records[-1]
        if is_best := record is module.best:
            module.swap_averages()
            trainer.save_checkpoint(self.run_dir / BEST, weights_only=True)
            module.swap_averages()
        elif decision.restore:
            module.restore(read_checkpoint(self.run_dir / BEST)["state_dict"])
        trainer.should_stop = module.stopped = module.stopped or decision.stop
        module.clear("valid")
        trainer.save_checkpoint(self.run_dir / LAST)
        if trainer.is_global_zero:
            write_metrics(self.run_dir / "metrics.csv", module.records)
            self.console.print(describe_epoch(record, is_best), highlight=False, soft_wrap=True)


def write_metrics(path: Path, records: list[Record]) -> None:
    """One row for each epoch, every number in full precision."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(records[-1]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_atomically(path, buffer.getvalue())


def describe_epoch(record: Record, is_best: bool) -> str:
    return (
        f"epoch {record['epoch']:>4}  lr {record['lr']:<7.4g} train {record['train_ppl']:8.2f}"
        f"  valid {record['valid_ppl']:8.2f}{' *' if is_best else '  '}"
        f"  {record['tokens_per_second']:>7,.0f} tokens/s  {record['seconds']:6.1f} s"
    )


class LiveProgress(ProgressBar):
    """One line that moves: epoch, rate, perplexities, speed and the time left in the epoch."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.live = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=2,
            transient=True,
            disable=not console.is_terminal,
        )

    def disable(self) -> None:
        """Show nothing: what Lightning asks of every rank but the first."""
        self.live.disable = True

    def on_train_start(self, trainer: lightning.Trainer, module: Any) -> None:
        self.bar = self.live.add_task("epoch 1", total=None, numbers="")
        self.live.start()

    def on_train_batch_end(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        done = args[-1] + 1
        if done % 10 and done != trainer.num_training_batches:
            return
        if done <= 10:
            self.live.reset(self.bar)
        valid = f"  valid {module.records[-1]['valid_ppl']:.1f}" if module.records else ""
        train, speed = module.running_ppl(), module.speed()
        self.live.update(
            self.bar,
            description=f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}",
            total=trainer.num_training_batches,
            completed=done,
            numbers=f"lr {module.learning_rate:g}  train {train:.1f}{valid}  {speed:,.0f} tok/s",
        )

    def on_validation_start(self, trainer: lightning.Trainer, module: Any) -> None:
        if trainer.training:
            self.live.update(self.bar, description="validation")

    def on_exception(self, trainer: lightning.Trainer, module: Any, exception: BaseException) -> None:
        self.live.stop()

    def on_train_end(self, trainer: lightning.Trainer, module: Any) -> None:
        self.live.stop()
