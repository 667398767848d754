"""The papers' gradient descent and its learning-rate schedules."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hornn.checks import require_choice, require_range
from hornn.heads import NarrowCopy
from hornn.kernels import native

CLIP_MODES = ("element", "norm")


class DivergenceError(ArithmeticError):
    """A loss or gradient that is not finite, or a loss far above that of a uniform guess."""


class ClippedOptimizer(torch.optim.Optimizer):
    """An optimizer that measures the gradient, refuses one that is not finite, and clips it before its update.

    `clip` > 0 (None: none) bounds each element of the gradient where `clip_mode` is `element`, and the
    Euclidean norm of the whole gradient where it is `norm`. After `step`, `grad_norm` holds the norm before
    the clip. Raises ValueError for a constant outside its range, DivergenceError for a gradient that is
    not finite; on a GPU, which nothing here waits for, the norm is a tensor and its reader has to check it.
    """

    clip: float | None
    clip_mode: str
    grad_norm: float | Tensor = math.nan

    def set_clip(self, clip: float | None, clip_mode: str) -> None:
        require_range("optimizer.clip", clip, "> 0 or null", clip is None or clip > 0)
        require_choice("optimizer.clip_mode", clip_mode, CLIP_MODES)
        self.clip = clip
        self.clip_mode = clip_mode

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run `closure` (loss and backward pass) where one is given, then update; returns its result."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self.clip_gradients()
            self.update()
        return loss

    def update(self) -> None:
        """The update itself, on clipped gradients."""
        super().step()

    def clip_gradients(self) -> None:
        """Measure the gradient's norm, stop where it is not finite, clip."""
        grads = self.gradients()
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        if norm.is_cuda:
            self.grad_norm = norm
        else:
            self.grad_norm = require_finite(float(norm))
            if self.clip is not None and self.grad_norm <= self.clip:  # then no element exceeds the clip
                return
        if self.clip is None:
            return
        if self.clip_mode == "element":
            torch._foreach_clamp_min_(grads, -self.clip)
            torch._foreach_clamp_max_(grads, self.clip)
        else:
            torch._foreach_mul_(grads, (self.clip / norm).clamp(max=1.0))

    def gradients(self) -> list[Tensor]:
        """The gradients of all parameters; of a sparse one the rows that it has, each once."""
        found = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and p.grad.is_sparse:
                    p.grad = p.grad.coalesce()
                    found.append(p.grad.values())
                elif p.grad is not None:
                    found.append(p.grad)
        return found


def require_finite(grad_norm: float) -> float:
    """The norm of a gradient; DivergenceError if it is not finite."""
    if not math.isfinite(grad_norm):
        raise DivergenceError(f"the gradient is not finite (its norm is {grad_norm})")
    return grad_norm


class MomentumSGD(ClippedOptimizer):
    """Gradient descent with momentum, decay beside the momentum, max-norm and clipping.

        g <- clip(dL/dw)
        M <- mu M - lr g
        w <- w + M - lr gamma w
        w_i <- w_i min(1, c / |w_i|)        for each unit's vector w_i of incoming weights

    lr > 0 the rate, mu = `momentum` in [0, 1), gamma = `weight_decay` >= 0, c = `max_norm` > 0 (None: no
    bound). A parameter group may set its own values of these.

    Source: Soltani's thesis, section 6.1; the clip from section 4 of the HORNN paper. Departures: the
    thesis bounds |w|^2 by c, here |w|; the incoming weights of one unit from one tap or from the input are a
    vector of their own. The constants of decay and max-norm are not published, nor is the clip's kind.

    `native` may be set for weights in fp32 on a CPU: the kernels of `hornn.kernels.native` then do it all in one
    pass over the weights, which writes `narrow`, the copy of one of them, too.
    """

    native = False
    narrow: NarrowCopy | None = None

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
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "max_norm": max_norm}
        )
        self.set_clip(clip, clip_mode)

    def clip_gradients(self) -> None:
        """Measure and clip; the native update clips in its own pass."""
        if self.native:
            self.grad_norm = require_finite(native.grad_norm(self.gradients()))
        else:
            super().clip_gradients()

    def update(self) -> None:
        clip, scale = math.inf, 1.0  # that the native update has still to apply
        if self.native and self.clip is not None and self.grad_norm > self.clip:
            if self.clip_mode == "element":
                clip = self.clip
            else:
                scale = self.clip / float(self.grad_norm)
        for group in self.param_groups:
            known = [p for p in group["params"] if p.grad is not None]
            for p in known:
                if p.grad.is_sparse:
                    self.update_rows(p, group, clip, scale)
            if not (params := [p for p in known if not p.grad.is_sparse]):
                continue
            grads = [p.grad for p in params]
            if self.native:
                none = params[0].new_empty(0)
                momenta = [self.momentum_of(p) if group["momentum"] else none for p in params]
                constants = (group["lr"], group["momentum"], group["weight_decay"], clip, scale)
                copies = [self.narrow_of(p) for p in params]
                native.momentum_update_(params, momenta, grads, *constants, group["max_norm"], copies)
                if self.narrow is not None and any(p is self.narrow.weight for p in params):
                    self.narrow.keep()
                continue
            momenta = [self.momentum_of(p) for p in params] if group["momentum"] else []
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            descend(params, momenta, grads, group["lr"], group["momentum"])
            if group["max_norm"] is not None:
                for p in params:
                    project_rows(p, group["max_norm"])

    def update_rows(self, weight: Tensor, group: dict[str, Any], clip: float, scale: float) -> None:
        """The update of a matrix whose gradient is 0 but in some rows.

        The others are not touched where momentum and decay are 0. Its rows are words: max-norm does not concern them.
        """
        lr, mu, decay = group["lr"], group["momentum"], group["weight_decay"]
        assert weight.grad is not None
        assert group["max_norm"] is None
        step = weight.grad.values().mul(scale).clamp_(-clip, clip).mul_(-lr)
        rows = weight.grad.indices()[0]
        if mu:
            momentum = self.momentum_of(weight)
            if self.native:
                none = weight.new_empty(0)
                native.momentum_update_([weight], [momentum], [none], lr, mu, decay, math.inf, 1.0, None)
            else:
                momentum.mul_(mu)
                weight.mul_(1 - lr * decay).add_(momentum)
            momentum.index_add_(0, rows, step)
        elif decay:
            weight.mul_(1 - lr * decay)
        weight.index_add_(0, rows, step)

    def narrow_of(self, parameter: Tensor) -> Tensor:
        """The copy of this parameter in bf16 that an update is to write, empty where there is none."""
        copy = self.narrow.tensor if self.narrow is not None and self.narrow.weight is parameter else None
        return parameter.new_empty(0) if copy is None else copy

    def momentum_of(self, parameter: Tensor) -> Tensor:
        """M of this parameter, 0 before its first update."""
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"]
        return momentum


def descend(params: list[Tensor], momenta: list[Tensor], grads: list[Tensor], lr: float, mu: float) -> None:
    """M <- mu M - lr g, w <- w + M in one pass over each tensor.

    torch's fused step is M <- mu M + (1 - dampening) g, w <- w - lr' M; without momentum it has no M.
    """
    rate, dampening = (-1.0, 1 + lr) if mu else (lr, 0.0)
    torch._fused_sgd_(
        params,
        grads,
        momenta,
        weight_decay=0.0,
        momentum=mu,
        lr=rate,
        dampening=dampening,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )
    tell_versions(params)


def tell_versions(params: Iterable[Tensor]) -> None:
    """Count a fused step, which torch does not: a copy in bf16 has to know that its weights changed."""
    torch.autograd.graph.increment_version(list(params))


def project_rows(weight: Tensor, max_norm: float) -> None:
    """Scale each row (last dimension) whose Euclidean norm exceeds `max_norm` back to it. Biases stay."""
    if weight.ndim < 2:
        return
    norms = torch.linalg.vector_norm(weight, dim=-1, keepdim=True)
    weight.mul_((max_norm / norms).clamp(max=1.0))


class AdamW(ClippedOptimizer, torch.optim.AdamW):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019), clipped. None of the papers used it."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: Iterable[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        clip: float | None = None,
        clip_mode: str = "norm",
    ) -> None:
        require_range("optimizer.lr", lr, "> 0", lr > 0)
        first, second = betas
        super().__init__(params, lr=lr, betas=(first, second), eps=eps, weight_decay=weight_decay, fused=True)
        self.set_clip(clip, clip_mode)

    def update(self) -> None:
        torch.optim.AdamW.step(self)
        tell_versions(p for group in self.param_groups for p in group["params"])


class AveragedSGD(ClippedOptimizer, torch.optim.ASGD):
    """Plain gradient descent; what is evaluated and kept is the mean of its weights after updates start, start + 1, ..

    Source: Polyak & Juditsky 1992; for language models Merity et al. 2018, who choose `start` by validation.
    None of the papers used it. `swap_averages` exchanges the weights with their averages.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        start: int = 1,
        weight_decay: float = 0.0,
        clip: float | None = None,
        clip_mode: str = "norm",
    ) -> None:
        require_range("optimizer.lr", lr, "> 0", lr > 0)
        require_range("optimizer.start", start, ">= 1 update", start >= 1)
        # torch copies the weights in its first t0 + 2 updates and averages from there on
        super().__init__(params, lr=lr, lambd=0.0, t0=start - 2, weight_decay=weight_decay)
        self.set_clip(clip, clip_mode)

    def update(self) -> None:
        torch.optim.ASGD.step(self)

    @torch.no_grad()
    def swap_averages(self) -> None:
        for parameter, state in self.state.items():
            current = parameter.clone()
            parameter.copy_(state["ax"])
            state["ax"].copy_(current)


class WeightNoise:
    """Noise N(0, std^2) on every weight while a gradient is taken, drawn anew for each update.

    Of `table`, the embedding, an update reads the rows of its words alone. `native` may be set for weights in fp32 on a
    CPU: `hornn.kernels.native` draws the noise then, and spares the other rows.

    Source: Pascanu et al. 2014, section 5.2 (std 0.075 in the released code, biases spared).
    """

    native = False

    def __init__(
        self, named_parameters: Iterable[tuple[str, Tensor]], std: float, table: Tensor | None = None
    ) -> None:
        require_range("weight_noise", std, ">= 0", std >= 0)
        self.std = std
        self.table = table
        self.weights = [p for name, p in named_parameters if not name.rpartition(".")[2].startswith("b")]
        self.rows: list[Tensor | None] = []  # those of each weight that have noise, None: all
        self.clean: list[Tensor] = []  # what they were without it

    @torch.no_grad()
    def add(self, words: Sequence[Tensor]) -> None:
        """Before a gradient that reads the embeddings of `words`."""
        if not self.std:
            return
        read = torch.cat([ids.flatten() for ids in words]).unique() if self.native else None
        self.rows = [read if weight is self.table else None for weight in self.weights]
        self.clean = [
            weight.clone() if rows is None else weight.index_select(0, rows)
            for weight, rows in zip(self.weights, self.rows, strict=True)
        ]
        if self.native:
            seeds = torch.randint(2**63 - 1, (len(self.weights),)).tolist()
            for weight, rows, seed in zip(self.weights, self.rows, seeds, strict=True):
                native.add_noise_(weight, self.std, seed, rows)
        else:
            for weight in self.weights:
                weight.add_(torch.randn_like(weight), alpha=self.std)

    @torch.no_grad()
    def remove(self) -> None:
        for weight, rows, clean in zip(self.weights, self.rows, self.clean, strict=False):
            if rows is None:
                weight.copy_(clean)
            else:
                weight.index_copy_(0, rows, clean)
        self.rows, self.clean = [], []


class Decision(NamedTuple):
    """What a schedule asks for at an epoch's end."""

    restore: bool = False  # the best weights so far come back
    stop: bool = False  # training ends


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
        vars(self).update(state)


class Constant(Schedule):
    """The rate stays."""

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        return Decision()


class HalveOnPlateau(Schedule):
    """Multiply the rate by `factor` after each epoch that does not improve validation.

    An epoch improves validation if its loss is below best * (1 - relative_threshold) - threshold, where best is
    the lowest loss before it in nats per token. `restore_best` brings the best weights back whenever the
    rate falls. Training stops instead of falling more than `max_falls` times (None: never).

    Source: HORNN paper, section 4: halved "if the cross entropy on the validation set does not decrease",
    which is both thresholds 0 without restoring; it gives no other constant. Mikolov et al. 2015 divide by
    1.5; their released code has relative_threshold 0.0001 and restores. The code of Pascanu et al. 2014
    halves, restores, and forgives a rise of 0.0002 of the loss (relative_threshold -0.0002).
    """

    def __init__(
        self,
        factor: float = 0.5,
        threshold: float = 0.0,
        relative_threshold: float = 0.0,
        restore_best: bool = False,
        max_falls: int | None = None,
    ) -> None:
        require_range("schedule.factor", factor, "in (0, 1)", 0 < factor < 1)
        require_range("schedule.threshold", threshold, ">= 0 nats per token", threshold >= 0)
        require_range(
            "schedule.relative_threshold", relative_threshold, "in (-1, 1)", -1 < relative_threshold < 1
        )
        require_range("schedule.max_falls", max_falls, ">= 0 or null", max_falls is None or max_falls >= 0)
        self.factor = factor
        self.threshold = threshold
        self.relative_threshold = relative_threshold
        self.restore_best = restore_best
        self.max_falls = max_falls
        self.best = math.inf
        self.falls = 0

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        improved = valid_nll < self.best * (1 - self.relative_threshold) - self.threshold
        self.best = min(self.best, valid_nll)
        if improved:
            return Decision()
        if self.max_falls is not None and self.falls == self.max_falls:
            return Decision(stop=True)
        self.falls += 1
        self.scale *= self.factor
        return Decision(restore=self.restore_best)


class ConstantThenHalve(Schedule):
    """The rate stays for `constant_epochs`, then falls by `factor` at the end of every epoch.

    Source: HORNN paper, section 4.2: on text8, 5 epochs at 0.5, then halved at the end of every epoch.
    """

    def __init__(self, constant_epochs: int = 5, factor: float = 0.5) -> None:
        require_range("schedule.factor", factor, "in (0, 1)", 0 < factor < 1)
        require_range("schedule.constant_epochs", constant_epochs, ">= 0", constant_epochs >= 0)
        self.constant_epochs = constant_epochs
        self.factor = factor

    def decide(self, epoch: int, step: int, valid_nll: float) -> Decision:
        if epoch >= self.constant_epochs:
            self.scale *= self.factor
        return Decision()


class InverseTime(Schedule):
    """The rate 1 / (1 + max(0, t - t0) / tau) of the initial one; t counts updates.

    t0 is the update at which validation first got worse; until then the rate stays.

    Source: Pascanu et al. 2014, section 5.1; tau ("beta") 2330 on Nottingham, 1475 on MuseData, 100 on JSB
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
