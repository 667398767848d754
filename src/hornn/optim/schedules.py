"""The papers' learning-rate schedules: the learning rate as a multiple of the first one, by the validation loss."""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from hornn.checks import require_range


class Decision(NamedTuple):
    """What a schedule asks for at an epoch's end."""

    restore: bool = False  # the best weights so far come back
    stop: str = ""  # why training ends, where it does


class Schedule(ABC):
    """The learning rate as a multiple of the initial one. Its attributes are its state."""

    scale: float = 1.0

    def rate(self, step: int) -> float:
        """The multiple for the update after `step` updates."""
        return self.scale

    @abstractmethod
    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        """What follows from the validation loss (nats per token) after `epoch` epochs and `step` updates."""

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """TypeError for the state of another schedule, or of what is no number, no list of numbers and not None."""
        own = state.keys() <= {*vars(self), "scale"}
        numbers = [
            each for value in state.values() for each in (value if isinstance(value, list) else [value])
        ]
        if not own or not all(isinstance(value, int | float | None) for value in numbers):
            raise TypeError(f"the state {state} is not of {type(self).__name__}")
        vars(self).update(state)


class Constant(Schedule):
    """The learning rate stays."""

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        return Decision()


class HalveOnPlateau(Schedule):
    """Multiply the learning rate by `factor` after each epoch that does not improve validation.

    With `patience` p, so many such epochs in a row are forgiven before each fall. An epoch improves validation if its
    loss is below best * (1 - relative_threshold) - threshold; best is the lowest loss before it, in nats per token.
    `restore_best` brings the best weights back whenever the learning rate falls. Training stops instead of falling more
    than `max_falls` times (None: never).

    Source: HORNN paper, section 4: halved "if the cross entropy function on the validation set does not decrease",
    which is both thresholds 0 without restoring; it gives no other constant. Mikolov et al. 2015 divide by
    1.5; their released code has relative_threshold 0.0001 and restores, but compares with the last epoch that improved
    validation, and restores the weights of that epoch. The code of Pascanu et al. 2014 halves, restores, and forgives a
    rise of the loss by 0.02 % (relative_threshold -0.0002).
    """

    def __init__(
        self,
        factor: float = 0.5,
        threshold: float = 0.0,
        relative_threshold: float = 0.0,
        restore_best: bool = False,
        max_falls: int | None = None,
        patience: int = 0,
    ) -> None:
        require_range("schedule.factor", factor, "in (0, 1)", 0 < factor < 1)
        require_range("schedule.threshold", threshold, ">= 0 nats per token", threshold >= 0)
        require_range(
            "schedule.relative_threshold", relative_threshold, "in (-1, 1)", -1 < relative_threshold < 1
        )
        require_range("schedule.max_falls", max_falls, ">= 0 or null", max_falls is None or max_falls >= 0)
        require_range("schedule.patience", patience, ">= 0 epochs", patience >= 0)
        self.factor = factor
        self.threshold = threshold
        self.relative_threshold = relative_threshold
        self.restore_best = restore_best
        self.max_falls = max_falls
        self.patience = patience
        self.best = math.inf
        self.falls = 0
        self.forgiven = 0  # epochs in a row, up to now

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        improved = valid_nll < self.best * (1 - self.relative_threshold) - self.threshold
        self.best = min(self.best, valid_nll)
        if improved:
            self.forgiven = 0
            return Decision()
        if self.forgiven < self.patience:
            self.forgiven += 1
            return Decision()
        self.forgiven = 0
        if self.max_falls is not None and self.falls == self.max_falls:
            falls = f"{self.falls} falls of the rate (schedule.max_falls)"
            return Decision(stop=f"validation did not improve after the last of {falls}")
        self.falls += 1
        self.scale *= self.factor
        return Decision(restore=self.restore_best)


class ConstantThenHalve(Schedule):
    """The learning rate stays for `constant_epochs`, then falls by `factor` at the end of every epoch.

    Source: HORNN paper, section 4.2: on text8, 5 epochs at 0.5, then halved at the end of every epoch.
    """

    def __init__(self, constant_epochs: int = 5, factor: float = 0.5) -> None:
        require_range("schedule.factor", factor, "in (0, 1)", 0 < factor < 1)
        require_range("schedule.constant_epochs", constant_epochs, ">= 1", constant_epochs >= 1)
        self.constant_epochs = constant_epochs
        self.factor = factor

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        if epoch >= self.constant_epochs:
            self.scale *= self.factor
        return Decision()


class InverseTime(Schedule):
    """The learning rate 1 / (1 + max(0, t - t0) / tau) times the initial one; t counts updates.

    t0 is the update at which validation first got worse; until then the learning rate stays.

    Source: Pascanu et al. 2014, section 5.2, footnote 1; tau ("beta") 2330 on Nottingham, 1475 on MuseData, 100 on JSB
    Chorales, as recalled, not verified.
    """

    def __init__(self, tau: float) -> None:
        require_range("schedule.tau", tau, "> 0 updates", tau > 0)
        self.tau = tau
        self.best = math.inf
        self.start: int | None = None

    def rate(self, step: int) -> float:
        return 1.0 if self.start is None else 1 / (1 + max(0, step - self.start) / self.tau)

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        if self.start is None and valid_nll > self.best:
            self.start = step
        self.best = min(self.best, valid_nll)
        return Decision()
