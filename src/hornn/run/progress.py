"""What a person sees while a network trains: a bar in a terminal, a line now and then elsewhere."""

import time
from typing import Any

import lightning
from lightning.pytorch.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hornn.metrics import Units
from hornn.run.keeper import RunKeeper
from hornn.shown import is_screen

EVERY = 60.0  # seconds between two lines where there is no terminal


class LiveProgress(ProgressBar):
    """Where the run is: epoch, learning rate, scores, speed, and the time left to its last update.

    In a terminal two lines move, one for the run and, meanwhile, one for validation or the test. Elsewhere there is a
    line every `EVERY` seconds. A run has no end to tell where neither epochs nor updates are bounded; a schedule or a
    callback may end it earlier.
    """

    def __init__(self, console: Console, keeper: RunKeeper) -> None:
        super().__init__()
        self.console = console
        self.keeper = keeper
        self.shown = True
        self.live = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=2,
            transient=True,
            disable=not is_screen(console),
        )
        self.run = self.live.add_task("epoch 1", total=None, numbers="", visible=False)
        self.scoring = self.live.add_task("validation", total=None, numbers="", visible=False)
        self.said = self.began = time.monotonic()
        self.resumed_at = 0  # the update with which this start of the run began

    def disable(self) -> None:
        """Show nothing: what Lightning asks of every rank but the first."""
        self.live.disable, self.shown = True, False

    def last_step(self, trainer: lightning.Trainer) -> int | None:
        """The update at which the run ends at the latest, None where nothing bounds it."""
        epochs = trainer.max_epochs
        bounds = [self.keeper.max_steps] if self.keeper.max_steps > 0 else []
        if epochs is not None and epochs > 0:
            bounds.append(epochs * int(trainer.num_training_batches))
        return min(bounds, default=None)

    def on_train_start(self, trainer: lightning.Trainer, module: Any) -> None:
        self.said = self.began = time.monotonic()
        self.resumed_at = trainer.global_step
        self.live.update(self.run, visible=True, total=self.last_step(trainer), completed=self.resumed_at)
        self.live.start()

    def on_train_batch_end(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        step, last = trainer.global_step, self.last_step(trainer)
        if step % 10 and step != last:
            return
        due = time.monotonic() - self.said >= EVERY
        if self.live.disable and not (due and self.shown):
            return
        epoch = f"epoch {trainer.current_epoch + 1}" + (
            f"/{trainer.max_epochs}" if trainer.max_epochs != -1 else ""
        )
        numbers = self.numbers(module)
        self.live.update(self.run, description=epoch, completed=step, numbers=numbers)
        if due and not is_screen(self.console):
            of = f" of {last:,}" if last else ""
            self.say(f"  {epoch}  update {step:,}{of}  {numbers}{self.time_left(step, last)}")

    def numbers(self, module: Any) -> str:
        records = self.keeper.records
        units: Units = module.units
        digits = units.digits - 1
        valid = f" valid {units.show(records[-1][f'valid_{units.key}'], digits)}" if records else ""
        train, speed = units.show(module.running_score(), digits), self.keeper.speed(module)
        return f"lr {module.learning_rate:g} train {train}{valid} {speed / 1000:.0f}k {units.target}s/s"

    def time_left(self, step: int, last: int | None) -> str:
        """To the last update, by the speed since this start, validation included; empty where none is known."""
        done = step - self.resumed_at
        if last is None or not done:
            return ""
        minutes = (last - step) * (time.monotonic() - self.began) / done / 60
        return f"  {minutes:.0f} min left" if minutes >= 1 else "  less than a minute left"

    def say(self, line: str) -> None:
        self.said = time.monotonic()
        self.console.print(line, highlight=False, soft_wrap=True)

    def on_validation_start(self, trainer: lightning.Trainer, module: Any) -> None:
        self.begin_scoring("validation", trainer.num_val_batches)

    def on_validation_batch_end(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        self.live.advance(self.scoring)

    def on_validation_end(self, trainer: lightning.Trainer, module: Any) -> None:
        self.live.update(self.scoring, visible=False)

    def on_test_start(self, trainer: lightning.Trainer, module: Any) -> None:
        self.live.start()
        self.live.update(self.run, visible=False)
        self.begin_scoring("test", trainer.num_test_batches)

    def on_test_batch_end(self, trainer: lightning.Trainer, module: Any, *args: Any) -> None:
        self.live.advance(self.scoring)

    def on_test_end(self, trainer: lightning.Trainer, module: Any) -> None:
        self.live.stop()

    def begin_scoring(self, what: str, batches: list[int | float]) -> None:
        self.live.reset(self.scoring, description=what, total=sum(batches), visible=True)

    def on_exception(self, trainer: lightning.Trainer, module: Any, exception: BaseException) -> None:
        self.live.stop()

    def on_train_end(self, trainer: lightning.Trainer, module: Any) -> None:
        self.live.stop()
