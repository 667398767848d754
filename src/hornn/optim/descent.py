"""The papers' gradient descent with momentum, and the clip that every optimizer has."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hornn.checks import require_choice, require_range
from hornn.kernels import fused
from hornn.kernels import update as kernels
from hornn.kernels.weight_copies import Bf16Copy
from hornn.norm import norm
from hornn.optim.divergence import require_finite

CLIP_MODES = ("element", "norm")


def require_rates(lr: float, weight_decay: float) -> None:
    """Raise ValueError for what every optimizer refuses."""
    require_range("optimizer.lr", lr, "> 0", lr > 0)
    require_range("optimizer.weight_decay", weight_decay, ">= 0", weight_decay >= 0)


class ClippedOptimizer(torch.optim.Optimizer):
    """An optimizer that measures the gradient, refuses one that is not finite, and clips it before its update.

    `clip` > 0 (None: none) bounds each element of the gradient where `clip_mode` is `element`, and the
    Euclidean norm of the whole gradient where it is `norm`. After `step`, `grad_norm` holds the norm before
    the clip. Raises ValueError for a constant outside its range, DivergenceError for a gradient that is
    not finite.

    On a GPU an update can be recorded as a CUDA graph by `step_on_device`. `replay` then takes the place of clip and
    update in `step`, and whoever set it has the norm.
    """

    clip: float | None
    clip_mode: str
    grad_norm: float = math.nan
    replay: Callable[[], None] | None = None

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
        if self.replay is not None:
            self.replay()
            return loss
        with torch.no_grad():
            self.clip_gradients()
            self.update()
        return loss

    def update(self) -> None:
        """The update itself, on clipped gradients."""
        super().step()

    @torch.no_grad()
    def step_on_device(self, rates: Sequence[Tensor]) -> Tensor:
        """Clip and update without a number read off the GPU; returns the gradient's norm before the clip, in float64.

        rates: the learning rate of each group, a scalar of fp32 on the GPU.
        """
        grads = self.gradients()
        grad_norm, factor = norm(grads), None
        if self.clip is not None and self.clip_mode == "element":
            torch._foreach_clamp_min_(grads, -self.clip)
            torch._foreach_clamp_max_(grads, self.clip)
        elif self.clip is not None:
            factor = (self.clip / grad_norm).clamp(max=1.0).to(grads[0].dtype)
        with self.rates_on_device(rates):
            self.update_scaled(grads, factor)
        return grad_norm

    def update_scaled(self, grads: list[Tensor], factor: Tensor | None) -> None:
        """The update on these gradients, times the scalar `factor`."""
        if factor is not None:
            torch._foreach_mul_(grads, factor)
        self.update()

    @contextmanager
    def rates_on_device(self, rates: Sequence[Tensor]) -> Iterator[None]:
        """Meanwhile the groups have these learning rates, and torch's optimizers read nothing off the GPU."""
        held = [dict(group) for group in self.param_groups]
        try:
            for group, rate in zip(self.param_groups, rates, strict=True):
                group["lr"] = rate
                if "capturable" in group:
                    group["capturable"] = True
            yield
        finally:
            for group, before in zip(self.param_groups, held, strict=True):
                group.update(before)

    def clip_gradients(self) -> None:
        """Measure the gradient's norm, stop where it is not finite, clip."""
        grads = self.gradients()
        self.grad_norm = require_finite(float(norm(grads)))
        if self.clip is None or self.grad_norm <= self.clip:  # then no element exceeds the clip
            return
        if self.clip_mode == "element":
            torch._foreach_clamp_min_(grads, -self.clip)
            torch._foreach_clamp_max_(grads, self.clip)
        else:
            torch._foreach_mul_(grads, self.clip / self.grad_norm)

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


class MomentumSGD(ClippedOptimizer):
    """Gradient descent with momentum, weight decay beside the momentum, max-norm and clipping.

        g <- clip(dL/dw)
        M <- mu M - lr g
        w <- w + M - lr gamma w
        w_i <- w_i min(1, c / |w_i|)        for each unit's vector w_i of incoming weights

    lr > 0 is the learning rate, mu = `momentum` in [0, 1), gamma = `weight_decay` >= 0, c = `max_norm` > 0 (None: no
    bound). A parameter group may set its own values of these: biases that are a matrix need one without a max-norm.

    Source: Soltani's thesis, section 6.1; the clip from section 4 of the HORNN paper. Departures: the thesis bounds
    |w|^2 by c, we bound |w|; the incoming weights of one unit from one tap or from the input are a vector of their own;
    outgoing weights are not bounded, and the rows of the output layer are.
    The constants of weight decay and max-norm are not published. The thesis explains
    clipping by the norm (section 3.2); which kind the published 5.0 is of is not said.

    `native` may be set for weights in fp32 on a CPU: the kernels of `hornn.kernels.update` then do it all in one
    pass over the weights, which writes `bf16_copy`, the copy of one of them, too.
    """

    native = False
    bf16_copy: Bf16Copy | None = None

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
        require_rates(lr, weight_decay)
        require_range("optimizer.momentum", momentum, "in [0, 1)", 0 <= momentum < 1)
        require_range("optimizer.max_norm", max_norm, "> 0 or null", max_norm is None or max_norm > 0)
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "max_norm": max_norm}
        )
        self.set_clip(clip, clip_mode)

    def clip_gradients(self) -> None:
        """Measure and clip; the native update clips in its own pass."""
        if self.native:
            self.grad_norm = require_finite(kernels.grad_norm(self.gradients()))
        else:
            super().clip_gradients()

    def update(self) -> None:
        clip, scale = math.inf, 1.0  # that the native update has still to apply
        if self.native and self.clip is not None and self.grad_norm > self.clip:
            if self.clip_mode == "element":
                clip = self.clip
            else:
                scale = self.clip / self.grad_norm
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
                copies = [self.bf16_copy_of(p) for p in params]
                kernels.momentum_update_(params, momenta, grads, *constants, group["max_norm"], copies)
                if self.bf16_copy is not None and any(p is self.bf16_copy.weight for p in params):
                    self.bf16_copy.keep()
                continue
            momenta = [self.momentum_of(p) for p in params] if group["momentum"] else []
            if group["weight_decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            descend(params, momenta, grads, group["lr"], group["momentum"])
            if group["max_norm"] is not None:
                for p in params:
                    project_rows(p, group["max_norm"])

    def update_scaled(self, grads: list[Tensor], factor: Tensor | None) -> None:
        if not fused.can_read(grads[0]):
            super().update_scaled(grads, factor)
            return
        from hornn.kernels.fused_passes import momentum_update_

        scale = torch.ones((), device=grads[0].device) if factor is None else factor
        for group in self.param_groups:
            mu, decay = group["momentum"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is not None:
                    momentum = self.momentum_of(p) if mu else None
                    momentum_update_(p, momentum, p.grad.contiguous(), group["lr"], scale, mu, decay)
                    if group["max_norm"] is not None:
                        project_rows(p, group["max_norm"])

    def update_rows(self, weight: Tensor, group: dict[str, Any], clip: float, scale: float) -> None:
        """The update of a matrix whose gradient is 0 but in some rows.

        Other rows stay where momentum and weight decay are 0. Rows are words: max-norm does not concern them.
        """
        lr, mu, decay = group["lr"], group["momentum"], group["weight_decay"]
        assert weight.grad is not None
        assert group["max_norm"] is None
        rows, grad = weight.grad.indices()[0], weight.grad.values()
        momentum = self.momentum_of(weight) if mu else weight.new_empty(0)
        if self.native:
            kernels.momentum_update_rows_(weight, momentum, rows, grad, lr, mu, decay, clip, scale)
            return
        step = grad.mul(scale).clamp_(-clip, clip).mul_(-lr)
        if mu:
            momentum.mul_(mu)
            weight.mul_(1 - lr * decay).add_(momentum)
            momentum.index_add_(0, rows, step)
        elif decay:
            weight.mul_(1 - lr * decay)
        weight.index_add_(0, rows, step)

    def bf16_copy_of(self, parameter: Tensor) -> Tensor:
        """The copy of this parameter in bf16 that an update is to write, empty where there is none."""
        copy = self.bf16_copy
        if copy is None or copy.tensor is None or copy.weight is not parameter:
            return parameter.new_empty(0)
        return copy.tensor

    def momentum_of(self, parameter: Tensor) -> Tensor:
        """M of this parameter, 0 before its first update."""
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"]
        return momentum


def descend(
    params: list[Tensor], momenta: list[Tensor], grads: list[Tensor], lr: float | Tensor, mu: float
) -> None:
    """M <- mu M - lr g, w <- w + M, in one pass over each tensor where lr is a float; g is overwritten where not.

    torch's fused step is M <- mu M + (1 - dampening) g, w <- w - lr' M; without momentum it has no M.
    """
    if isinstance(lr, Tensor):
        torch._foreach_mul_(grads, -lr)
        if mu:
            torch._foreach_mul_(momenta, mu)
            torch._foreach_add_(momenta, grads)
        torch._foreach_add_(params, momenta if mu else grads)
        return
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
    """Scale each row (last dimension) whose Euclidean norm exceeds `max_norm` back to it. Vectors stay."""
    if weight.ndim < 2:
        return
    norms = torch.linalg.vector_norm(weight, dim=-1, keepdim=True)
    weight.mul_((max_norm / norms).clamp(max=1.0))
