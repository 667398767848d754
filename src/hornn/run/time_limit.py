"""trainer.max_time: a run that stops when its time is over, and goes on by the same command."""

from datetime import timedelta
from typing import Any

import lightning
from lightning.pytorch.callbacks import Timer
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from hornn.command_line.ending import UNFINISHED, same_command
from hornn.run.announce import console
from hornn.run.identity import LAST
from hornn.run.keeper import RunKeeper
from hornn.run.termination import leave_to_first


class TimeLimit(Timer):
    """Ends the process between two updates once it has trained for `duration`, as a cut-off run that resumes.

    Each start of a run has this time anew. What Lightning makes of it, the early end of an epoch, would leave that
    epoch part-read and change the schedule.
    """

    def __init__(self, duration: str | dict[str, int] | timedelta, keeper: RunKeeper) -> None:
        try:
            super().__init__(duration)
            remaining = self.time_remaining()
        except (ArithmeticError, AttributeError, TypeError, ValueError, MisconfigurationException):
            remaining = None
        if remaining is None or remaining <= 0:
            raise ValueError(
                f"trainer.max_time must be a time such as 00:02:30:00 (DD:HH:MM:SS), got {duration!r}"
            )
        self.keeper = keeper

    def on_fit_start(self, trainer: lightning.Trainer, *args: Any, **kwargs: Any) -> None:
        """The time begins with the training."""

    def on_train_epoch_start(self, trainer: lightning.Trainer, *args: Any, **kwargs: Any) -> None:
        """Behind an epoch, whose end has saved all that the run needs to go on."""
        if trainer.global_step and self.is_over(trainer):
            self.leave(trainer)

    def on_train_batch_end(self, trainer: lightning.Trainer, *args: Any, **kwargs: Any) -> None:
        if self.is_over(trainer) and not self.keeper.closes_epoch(trainer):
            self.keeper.save(trainer, LAST)
            self.leave(trainer)

    def is_over(self, trainer: lightning.Trainer) -> bool:
        """Whether the first rank's time is."""
        remaining = self.time_remaining()
        assert remaining is not None
        return bool(trainer.strategy.broadcast(remaining <= 0))

    def leave(self, trainer: lightning.Trainer) -> None:
        """End this process."""
        if trainer.is_global_zero:
            console.print(
                f"not finished: trainer.max_time is over, in epoch {trainer.current_epoch + 1} after update "
                f"{trainer.global_step:,}; {same_command()} goes on",
                soft_wrap=True,
            )
        leave_to_first(trainer)
        raise SystemExit(UNFINISHED)

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the next start has its own time."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing."""
