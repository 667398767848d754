"""The papers' gradient descent and its learning-rate schedules."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hornn.cells.base import require_choice

CLIP_MODES = ("element", "norm")


class DivergenceError(ArithmeticError):
    """A loss or gradient that is not finite, or a loss far above that of a uniform guess."""


class MomentumSGD(torch.optim.Optimizer):
    """Gradient descent with momentum, decay beside the momentum, max-norm and clipping.

        g <- clip(dL/dw)
        M <- mu M - lr g
        w <- w + M - lr gamma w
        w_i <- w_i min(1, c / |w_i|)        for each unit's vector w_i of incoming weights

    lr > 0 the rate, mu = `momentum` in [0, 1), gamma = `weight_decay` >= 0, c = `max_norm` > 0 (None: no
    bound). `clip` > 0 (None: none) bounds each element of the gradient where `clip_mode` is `element`, and
    the Euclidean norm of the whole gradient where it is `norm`. A parameter group may set its own values.

    Source: Soltani's thesis, section 6.1; the clip from section 4 of the HORNN paper. Departures: the
    thesis bounds |w|^2 by c, here |w|; the incoming weights of one unit from one tap or from the input are a
    vector of their own. The constants of decay and max-norm are not published, nor is the clip's kind.
    After `step`, `grad_norm` holds the norm of the gradient before the clip.
    Raises ValueError for a constant outside its range, DivergenceError for a gradient that is not finite.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        clip: float | None = None,
        clip_mode: str = "element",
    ) -> None:
        require_range("optimizer.lr", lr, "> 0", lr > 0)
        require_range("optimizer.momentum", momentum, "in [0, 1)", 0 <= momentum < 1)
        require_range("optimizer.weight_decay", weight_decay, ">= 0", weight_decay >= 0)
        require_range("optimizer.max_norm", max_norm, "> 0 or null", max_norm is None or max_norm > 0)
        require_range("optimizer.clip", clip, "> 0 or null", clip is None or clip > 0)
        require_choice("optimizer.clip_mode", clip_mode, CLIP_MODES)
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "max_norm": max_norm}
        )
        self.clip = clip
        self.clip_mode = clip_mode
        self.grad_norm = math.nan

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run `closure` (loss and backward pass) where one is given, then update; returns its result."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.clip_gradients()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            momenta = [self.momentum_of(p) for p in params]
            lr = group["lr"]
            torch._foreach_mul_(momenta, group["momentum"])
            torch._foreach_add_(momenta, grads, alpha=-lr)
            torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
            torch._foreach_add_(params, momenta)
            if group["max_norm"] is not None:
                for p in params:
                    project_rows(p, group["max_norm"])
        return loss

    def momentum_of(self, parameter: Tensor) -> Tensor:
        """M of this parameter, 0 before its first update."""
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"]
        return momentum

    def clip_gradients(self) -> None:
        """Measure the gradient's norm, stop where it is not finite, clip."""
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        self.grad_norm = float(torch.stack(torch._foreach_norm(grads)).norm())
        if not math.isfinite(self.grad_norm):
            raise DivergenceError(f"the gradient is not finite (its norm is {self.grad_norm})")
        if self.clip is None:
            return
        if self.clip_mode == "element":
            torch._foreach_clamp_min_(grads, -self.clip)
            torch._foreach_clamp_max_(grads, self.clip)
        elif self.grad_norm > self.clip:
            torch._foreach_mul_(grads, self.clip / self.grad_norm)


def project_rows(weight: Tensor, max_norm: float) -> None:
    """Scale each row (last dimension) whose Euclidean norm exceeds `max_norm` back to it. Biases stay."""
    if weight.ndim < 2:
        return
    norms = torch.linalg.vector_norm(weight, dim=-1, keepdim=True)
    weight.mul_((max_norm / norms).clamp(max=1.0))


def require_range(name: str, value: float | None, allowed: str, holds: bool) -> None:
    """Raise ValueError unless `holds`."""
    if not holds:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


class Decision(NamedTuple):
    """What a schedule asks for at an epoch's end."""

    factor: float = 1.0  # the learning rate is multiplied by it
    restore: bool = False  # the best weights so far come back
    stop: bool = False  # training ends


class Schedule(ABC):
    """Decides on the learning rate at each epoch's end. Its attributes are its state."""

    @abstractmethod
    def decide(self, epoch: int, valid_nll: float) -> Decision:
        """epoch: how many epochs are done, >= 1; valid_nll: nats per token after it."""

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class Constant(Schedule):
    """The rate stays."""

    def decide(self, epoch: int, valid_nll: float) -> Decision:
        return Decision()


class HalveOnPlateau(Schedule):
    """Multiply the rate by `factor` after each epoch that does not improve validation.

    An epoch improves validation if its loss is below the best before it by more than `threshold` nats per
    token. `restore_best` brings the best weights back whenever the rate falls. Training stops at the
    first fall beyond `max_falls` (None: never).

    Source: HORNN paper, section 4: halved "if the cross entropy on the validation set does not decrease",
    which is threshold 0 without restoring; it gives no other constant.
    """

    def __init__(
        self,
        factor: float = 0.5,
        threshold: float = 0.0,
        restore_best: bool = False,
        max_falls: int | None = None,
    ) -> None:
        require_range("schedule.factor", factor, "in (0, 1)", 0 < factor < 1)
        require_range("schedule.threshold", threshold, ">= 0 nats per token", threshold >= 0)
        require_range("schedule.max_falls", max_falls, ">= 0 or null", max_falls is None or max_falls >= 0)
        self.factor = factor
        self.threshold = threshold
        self.restore_best = restore_best
        self.max_falls = max_falls
        self.best = math.inf
        self.falls = 0

    def decide(self, epoch: int, valid_nll: float) -> Decision:
        improved = valid_nll < self.best - self.threshold
        self.best = min(self.best, valid_nll)
        if improved:
            return Decision()
        self.falls += 1
        if self.max_falls is not None and self.falls > self.max_falls:
            return Decision(stop=True)
        return Decision(factor=self.factor, restore=self.restore_best)


class ConstantThenHalve(Schedule):
    """The rate stays for `constant_epochs`, then falls by `factor` at the end of every epoch.

    Source: HORNN paper, section 4.2: on text8, 5 epochs at 0.5, then halved at the end of every epoch.
    """

    def __init__(self, constant_epochs: int = 5, factor: float = 0.5) -> None:
        require_range("schedule.factor", factor, "in (0, 1)", 0 < factor < 1)
        require_range("schedule.constant_epochs", constant_epochs, ">= 0", constant_epochs >= 0)
        self.constant_epochs = constant_epochs
        self.factor = factor

    def decide(self, epoch: int, valid_nll: float) -> Decision:
        return Decision(factor=self.factor if epoch >= self.constant_epochs else 1.0)
