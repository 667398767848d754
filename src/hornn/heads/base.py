"""What every output layer promises."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from hornn.checks import require_choice
from hornn.kernels.reduced import multiplies_in
from hornn.machine import cpuinfo

PRECISIONS = ("auto", "fp32", "bf16", "fp16")


def resolve_precision(precision: str, device: torch.device, native: bool = True) -> str:
    """Turn `auto` into `bf16` where `device` multiplies matrices faster in bf16, else into `fp16` or `fp32` likewise.

    native: whether the native kernels may be used, which products in fp16 need. Raises ValueError for an unknown
    precision, and for one that the device only emulates.
    """
    require_choice("precision", precision, PRECISIONS)
    if device.type == "cuda":
        has_bf16 = is_faster = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has_bf16 = device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
        is_faster = has_bf16 and (torch.cpu._is_amx_tile_supported() or not is_intel())
    in_half = native and device.type == "cpu" and multiplies_in(torch.float16)
    if (precision == "bf16" and not has_bf16) or (precision == "fp16" and not in_half):
        needs = ", which has to be a CPU with AVX-512 FP16 and native kernels" if precision == "fp16" else ""
        raise ValueError(
            f"precision={precision} is not supported by this {device.type}{needs}; use fp32, or auto"
        )
    if precision != "auto":
        return precision
    return "bf16" if is_faster else "fp16" if in_half else "fp32"


def is_intel() -> bool:
    """Whether Intel made this CPU: its AVX-512 multiplies half as fast in bf16 as in fp32 (docs/speed.md)."""
    return cpuinfo().get("vendor_id") == "GenuineIntel"


class Head(nn.Module, ABC):
    """P(y_t | h_t) of the targets of each step.

    A head is built with `input_size=` (H), `counts=` (how often each of the V outcomes occurs in the training data:
    each word, each class of a frame, each key that sounds) and `bias=`; its other arguments are bound. It predicts
    `classes`, one of the V at each step, or `keys`, each of the V by itself. `by_word` names the parameters whose rows
    are of one outcome each. `precision`, one of `precisions`, is set
    before training and concerns `loss` alone, `scoring` is the precision of `nll`; `native` says whether the head may
    use the native kernels. A head that `waits` reads numbers off its device in `loss`.
    """

    predicts: str = "classes"
    by_word: tuple[str, ...] = ()
    precisions: tuple[str, ...] = PRECISIONS
    precision: str = "fp32"
    scoring: str = "fp32"
    native: bool = False
    waits: bool = False
    chance_nll: float  # nats of a target, if all that can come is equally likely

    @abstractmethod
    def log_probs(self, features: Tensor) -> Tensor:
        """(..., H) -> (..., V) in nats: log P of each class, or log P that each key sounds."""

    @abstractmethod
    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        """Negative log-likelihood in nats of each step's target, (T, B); 0 where a target is negative (padding).

        Targets are classes (T, B), or keys (T, B, V), each 0 or 1.
        """

    @abstractmethod
    def loss(self, features: Tensor, targets: Tensor, scale: float = 1.0) -> Tensor:
        """`scale` times the sum of `nll` over the chunk, differentiable."""

    def hits(self, features: Tensor, targets: Tensor) -> Tensor:
        """(2) in float64, whose quotient is the accuracy of the chunk: targets that are the likeliest ones, targets."""
        scored = targets >= 0
        found = self.log_probs(features).argmax(-1) == targets
        return torch.stack([(found & scored).sum(), scored.sum()]).double()

    def nearest(self, resolved: str) -> str:
        """What `resolve_precision` found, if this head has it; else fp32."""
        return resolved if resolved in self.precisions else "fp32"
