"""Optimizers that none of the papers used: Adam, and gradient descent whose weights are averaged."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from hornn.checks import require_range
from hornn.kernels import fused
from hornn.optim.descent import ClippedOptimizer, require_rates, tell_versions


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
        require_rates(lr, weight_decay)
        require_range("optimizer.eps", eps, "> 0", eps > 0)
        super().__init__(
            params, lr=lr, betas=require_betas(betas), eps=eps, weight_decay=weight_decay, fused=True
        )
        self.set_clip(clip, clip_mode)

    def update(self) -> None:
        torch.optim.AdamW.step(self)
        tell_versions(p for group in self.param_groups for p in group["params"])


def require_betas(betas: Iterable[float]) -> tuple[float, float]:
    """The two rates at which averages forget. Raises ValueError for anything else."""
    given = list(betas) if isinstance(betas, Iterable) and not isinstance(betas, str) else [betas]
    if len(given) != 2 or not all(type(beta) in (int, float) and 0 <= beta < 1 for beta in given):
        raise ValueError(
            f"optimizer.betas must be two numbers >= 0 and < 1 such as [0.9,0.999], got {betas!r}"
        )
    return given[0], given[1]


class AveragedSGD(ClippedOptimizer, torch.optim.ASGD):
    """Plain gradient descent; what is evaluated and kept is the mean of its weights after updates start, start + 1, ..

    Source: Polyak & Juditsky 1992; for language models Merity et al. 2018, who choose `start` by validation.
    None of the papers used it. `swap_averages` exchanges the weights with their averages. After `forget` the mean is of
    later weights alone.
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
        require_rates(lr, weight_decay)
        require_range("optimizer.start", start, ">= 1 update", start >= 1)
        # torch copies the weights in its first t0 + 2 updates and averages from there on
        super().__init__(params, lr=lr, lambd=0.0, t0=start - 2, weight_decay=weight_decay)
        self.set_clip(clip, clip_mode)

    def update(self) -> None:
        # torch steps at the rate that it noted after the step before: a new rate would come one update late
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter in self.state:
                    self.state[parameter]["eta"].copy_(torch.as_tensor(group["lr"]))
        torch.optim.ASGD.step(self)

    def update_scaled(self, grads: list[Tensor], factor: Tensor | None) -> None:
        known = [p for group in self.param_groups for p in group["params"] if p in self.state]
        if len(known) < len(grads) or not fused.can_read(grads[0]):
            super().update_scaled(grads, factor)
            return
        from hornn.kernels.fused_passes import averaged_update_

        scale = torch.ones((), device=grads[0].device) if factor is None else factor
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    given = state["ax"], p.grad.contiguous(), group["lr"], scale, state["mu"]
                    averaged_update_(p, *given, group["weight_decay"])
        steps = [self.state[p]["step"] for p in known]
        torch._foreach_add_(steps, 1)
        later = torch._foreach_sub(steps, self.param_groups[0]["t0"])
        torch._foreach_maximum_(later, 1.0)
        torch._foreach_reciprocal_(later)
        torch._foreach_copy_([self.state[p]["mu"] for p in known], later)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for parameter, state in self.state.items():  # torch leaves the count of steps on the CPU
            state["step"] = state["step"].to(parameter.device)

    def forget(self) -> None:
        """Leave the weights so far out of the mean; `start` goes on counting all updates."""
        made = max((int(state["step"]) for state in self.state.values()), default=0)
        for group in self.param_groups:
            group["t0"] = max(group["t0"] - made, -1)  # -1: from the next update on
        self.state.clear()

    @torch.no_grad()
    def swap_averages(self) -> None:
        for parameter, state in self.state.items():
            current = parameter.clone()
            parameter.copy_(state["ax"])
            state["ax"].copy_(current)
