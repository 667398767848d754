"""What a person sees while a network trains."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hornn.run.keeper import RunKeeper


class LiveProgress(ProgressBar):
    """One line that moves: epoch, learning rate, perplexities, speed and the time left in the epoch."""

    def __init__(self, console: Console, keeper: RunKeeper) -> None:
        super().__init__()
        self.keeper = keeper
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
        records = self.keeper.records
        valid = f"  valid {records[-1]['valid_ppl']:.1f}" if records else ""
        train, speed = module.running_ppl(), self.keeper.speed(module)
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
