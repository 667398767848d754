"""Softmax and cross entropy in one pass over the logits: in C++ for the CPU, in torch everywhere."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hornn.kernels import fused
from hornn.kernels.library import operators, require_floats
from hornn.kernels.reduced import multiplies_in

ROWS = 64  # rows of logits that are widened to fp32 at once: their block stays in the cache
# Words of a tile of logits, a multiple of 64. With four tiles a step of 10,000 words takes 3 % longer (measured).
WORDS = 10_048
# With fewer words than LEAST the logits of products in 16 bits lie in one tile, else in TILES tiles.
LEAST, TILES = 1000, 3
RAISED = 16.0  # times a probability in fp16, whose least number is 6e-8
LARGEST = 1000.0  # of a feature times `RAISED`: 32 of them add up to half of the largest number in fp16
# Features, rows by width, from which on transposing the weights first is faster (measured).
TRANSPOSE_FROM = 200_000


class LinearCrossEntropy(torch.autograd.Function):
    """Cross entropy of softmax(W h [+ b]), summed over rows and scaled; its gradients are found in the forward pass.

    With p = softmax(W h + b) and the one-hot target e, the gradient with respect to the logits is
    p - e, times the scale; it overwrites the logits, and two products turn it into the gradients of h and W.
    The products take `bf16_copy`, the weight in bf16, where it is given, or are those of `reduced_product` in the dtype
    `reduced`; exponentials are in fp32 (or in h's dtype if that is wider), the sum in float64.
    """

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        scale: float,
        bf16_copy: Tensor | None = None,
        use_native: bool = False,
        memory: "LogitMemory | None" = None,
        reduced: torch.dtype | None = None,
    ) -> Tensor:
        """h (N, H), weight (V, H), bias (V), targets (N) with negative ids ignored -> scalar, nats times scale."""
        if reduced is not None:
            total, *grads = differentiate_reduced(h, weight, bias, targets, scale, reduced, memory)
        elif use_native:
            total, *grads = differentiate_natively(h, weight, bias, targets, scale, bf16_copy, memory=memory)
        else:
            total, *grads = differentiate(h, weight, bias, targets, scale, bf16_copy)
        ctx.save_for_backward(*grads)
        return (total * scale).to(torch.promote_types(h.dtype, torch.float32))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled(ctx.saved_tensors, grad_output), None, None, None, None, None, None


def scaled(grads: Sequence[Tensor | None], factor: Tensor) -> Sequence[Tensor | None]:
    """The gradients times the gradient of the loss, which is 1 unless someone scales the loss once more."""
    if not factor.is_cuda and float(factor) == 1.0:
        return grads
    return [None if grad is None else grad * factor.to(grad.dtype) for grad in grads]


def differentiate(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    scale: float,
    bf16_copy: Tensor | None = None,
    outside: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """What `LinearCrossEntropy` says: the sum, unscaled, and the gradients of h, of the weight and of the bias.

    Where `outside` (N, V) is true a word cannot be this row's.
    """
    operand = weight if bf16_copy is None else bf16_copy
    h_operand = h.to(operand.dtype)
    logits = h_operand @ operand.mT
    if outside is not None:
        logits.masked_fill_(outside, -math.inf)
    total, grad_bias = cross_entropy_(logits, bias, targets, scale)
    grad_h = (logits @ operand).to(h.dtype)
    return total, grad_h, (logits.mT @ h_operand).to(weight.grad_dtype), grad_bias


def differentiate_reduced(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    scale: float,
    dtype: torch.dtype,
    memory: "LogitMemory | None" = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """`differentiate` on a CPU with products and logits in `dtype`, fp16 or bf16; h and weight are fp32.

    In fp16 a probability is RAISED in the gradient of the logits, so that those above 4e-9 count; less so where
    features are beyond 62, as 32 of them, each times such a gradient, are added up in fp16.
    """
    grad_dtype = weight.grad_dtype or weight.dtype
    _require_factors(h, weight, grad_dtype, dtype)
    (N, H), V = h.shape, len(weight)
    require_targets(N, V, bias, targets)
    wide = grad_dtype.itemsize // dtype.itemsize  # places that a number of the weight's gradient takes
    in_place = wide == 1 and H <= N <= 2 * H and V > LEAST  # see `differentiate_natively`
    width = -(-V // TILES // 64) * 64 if in_place else V
    room = H * width if in_place else wide * V * H
    numbers = memory.take(room + N * V, dtype) if memory else h.new_empty(room + N * V, dtype=dtype)
    grad_weight = numbers[: wide * V * H].view(grad_dtype).view(V, H)
    _, logits = lay_out(numbers[room:], N, V, width)
    raised = raised_by(h) if dtype == torch.float16 else 1.0
    lowered = scale / raised
    in_bf16, threads = dtype == torch.bfloat16, torch.get_num_threads()
    nll, grad_h, grad_bias = operators().linear_cross_entropy(
        h, weight, bias, targets, logits, grad_weight, in_bf16, raised, lowered, threads
    )
    return nll.sum(), grad_h, grad_weight, None if bias is None else grad_bias * lowered


def raised_by(h: Tensor) -> float:
    """What a probability in fp16 is multiplied by, for features h (N, H)."""
    largest = float(torch.linalg.vector_norm(h, math.inf)) if h.numel() else 0.0
    # a feature that is not finite takes the sum with it: no factor helps, and 0 could not be divided by
    return min(RAISED, LARGEST / max(largest, 1.0)) if math.isfinite(largest) else RAISED


def differentiate_natively(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    scale: float,
    bf16_copy: Tensor | None = None,
    outside: Tensor | None = None,
    memory: "LogitMemory | None" = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """`differentiate` on a CPU, for tiles of words: the gradient of the weight takes the place of used-up logits.

    The logits lie in memory tile by tile, behind room for the gradient of one tile. The gradient begins with that room.
    Where H <= N, a part of it, of H numbers a word, ends before the logits of its own tile, of N numbers a word.
    """
    operand = weight if bf16_copy is None else bf16_copy
    h_operand = h.to(operand.dtype)
    (N, H), V = h.shape, len(weight)
    # A product with the transpose of a large factor takes longer; transposing it first pays where it is large enough.
    transposes = bf16_copy is not None and h.numel() >= TRANSPOSE_FROM
    h_left = h_operand.mT.contiguous() if transposes else h_operand.mT
    # Of one tile nothing would be used up before its gradient; with many rows the gradient would keep too much memory.
    in_place = V > WORDS and weight.grad_dtype == operand.dtype and H <= N <= 2 * H
    room = H * WORDS if in_place else 0
    size = room + N * V
    numbers = memory.take(size, operand.dtype) if memory and in_place else operand.new_empty(size)
    grad_weight = numbers if in_place else numbers.new_empty(V * H, dtype=weight.grad_dtype)

    tiles, logits = lay_out(numbers[room:], N, V, WORDS)
    for words, tile in zip(tiles, logits, strict=True):
        rows = operand[words]
        torch.mm(h_operand, transpose(rows) if transposes else rows.mT, out=tile)
        if outside is not None:
            tile.masked_fill_(outside[:, words], -math.inf)
    total, grad_bias = native_cross_entropy_(logits, bias, targets, scale)

    grad_h = torch.zeros_like(h)
    for words, tile in zip(tiles, logits, strict=True):
        grad_h += tile @ operand[words]
        part = grad_weight[H * words.start : H * words.stop].view(-1, H)
        if transposes:
            part.copy_(transpose(h_left @ tile))
        elif part.dtype == tile.dtype:
            torch.mm(tile.mT, h_operand, out=part)
        else:
            part.copy_(tile.mT @ h_operand)
    return total, grad_h, grad_weight[: V * H].view(V, H), grad_bias


def lay_out(numbers: Tensor, N: int, V: int, width: int) -> tuple[list[slice], list[Tensor]]:
    """Tiles of `width` of V words, the last one narrower: each tile's words, and where its logits (N, words) lie."""
    tiles = [slice(first, min(first + width, V)) for first in range(0, V, width)]
    logits = [numbers[N * t.start : N * t.stop].view(N, t.stop - t.start) for t in tiles]
    return tiles, logits


class LogitMemory:
    """Where the logits of one update after the other lie. Memory that is still in use elsewhere is not given again.

    Without it, the C library would leave holes of tens of megabytes between what an update allocates (measured).
    """

    def __init__(self) -> None:
        self.tensor: Tensor | None = None

    def take(self, size: int, dtype: torch.dtype) -> Tensor:
        """An uninitialized tensor (size) on the CPU."""
        kept = self.tensor
        if kept is None or kept.dtype != dtype or len(kept) < size or operators().is_shared(kept):
            with torch.inference_mode(False):  # a training may write into it later
                self.tensor = kept = torch.empty(size, dtype=dtype)
        return kept[:size]

    def drop(self) -> None:
        """Give the memory back until it is taken again."""
        self.tensor = None


def cross_entropy_(
    logits: Tensor, bias: Tensor | None, targets: Tensor, scale: float
) -> tuple[Tensor, Tensor | None]:
    """`torch_cross_entropy_`, on a GPU in one pass where Triton is installed."""
    if fused.can_read(logits):
        from hornn.kernels import fused_passes

        if logits.size(1) <= fused_passes.WORDS:
            return fused_passes.cross_entropy_(logits, bias, targets, scale)
    return torch_cross_entropy_(logits, bias, targets, scale)


def torch_cross_entropy_(
    logits: Tensor, bias: Tensor | None, targets: Tensor, scale: float
) -> tuple[Tensor, Tensor | None]:
    """Overwrite logits (N, V) with the gradient of `scale` times their summed cross entropy.

    Returns that sum, unscaled, and the gradient of the bias. Rows whose target is negative add nothing. On a CPU
    it goes block by block: a block stays in the cache.
    """
    rows = ROWS if logits.device.type == "cpu" else max(1, len(logits))
    wide = torch.promote_types(logits.dtype, torch.float32)
    kept = targets >= 0
    total = logits.new_zeros((), dtype=torch.float64)
    grad_bias = None if bias is None else torch.zeros_like(bias)
    for block, words, mask in zip(logits.split(rows), targets.split(rows), kept.split(rows), strict=True):
        scores = block if bias is None else block + bias
        words = words.clamp(min=0).unsqueeze(-1)
        grad = scores.softmax(-1, dtype=wide)
        # -log p_w, by way of the likeliest word: the probability of w itself may be too small for its logarithm
        margin = scores.amax(-1, keepdim=True).to(wide) - scores.gather(-1, words).to(wide)
        nll = margin - grad.amax(-1, keepdim=True).log()
        total += (nll.squeeze(-1) * mask).sum(dtype=torch.float64)
        grad.scatter_add_(-1, words, grad.new_full(words.shape, -1.0))
        torch.mul(grad, (mask * scale).to(wide).unsqueeze(-1), out=grad if bias is not None else block)
        if grad_bias is not None:
            grad_bias += grad.sum(0)
            block.copy_(grad)
    return total, grad_bias


def native_cross_entropy_(
    logits: Sequence[Tensor], bias: Tensor | None, targets: Tensor, scale: float = 1.0
) -> tuple[Tensor, Tensor | None]:
    """The sum over rows of -log softmax(logits [+ bias])_target in nats, and the scaled gradient of the bias.

    logits: tiles (N, V_1), (N, V_2), .. of the words in order, fp32, bf16 or, where the machine multiplies in it, fp16;
    all widths but the last are multiples of 64. They are overwritten by their gradient, (softmax - one-hot) * scale.
    bias (V), fp32, of V words in all.
    targets (N), int64; a row whose target is negative adds nothing and becomes 0. Returns a float64 scalar and the bias
    gradient (V), fp32, which is None without a bias. ValueError for tensors that do not fit.
    """
    _require_logits(logits, bias, targets)
    nll, grad_bias = operators().cross_entropy(
        list(logits), bias, targets, True, scale, torch.get_num_threads()
    )
    return nll.sum(), None if bias is None else grad_bias


def native_nll(logits: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """-log softmax(logits [+ bias])_target of each row (N), float64, 0 where a target is negative.

    Arguments and errors: as in `native_cross_entropy_`, in one tile; the logits stay, and there is no gradient.
    """
    _require_logits([logits], bias, targets)
    result: Tensor = operators().cross_entropy([logits], bias, targets, False, 1.0, torch.get_num_threads())[
        0
    ]
    return result


def transpose(x: Tensor) -> Tensor:
    """The contiguous transpose of x (M, N), contiguous bf16 on the CPU, else ValueError."""
    if x.dtype != torch.bfloat16 or x.device.type != "cpu" or x.ndim != 2 or not x.is_contiguous():
        raise ValueError(
            f"only a contiguous bf16 matrix on the CPU can be transposed, got {x.dtype} {tuple(x.shape)} with strides "
            f"{x.stride()} on {x.device}"
        )
    result: Tensor = operators().transpose(x, torch.get_num_threads())
    return result


def _require_logits(logits: Sequence[Tensor], bias: Tensor | None, targets: Tensor) -> None:
    dtypes = (torch.float32, torch.bfloat16, *([torch.float16] if multiplies_in(torch.float16) else []))
    for i, tile in enumerate(logits):
        if tile.dtype not in dtypes or tile.device.type != "cpu":
            raise ValueError(
                f"logits must be fp32 or bf16 on the CPU, or fp16 on one that has it, got {tile.dtype} on {tile.device}"
            )
        if tile.ndim != 2 or not tile.size(1) or not tile.is_contiguous():
            raise ValueError(f"logits must be contiguous (N, V) with V >= 1, got {tuple(tile.shape)}")
        if (len(tile), tile.dtype) != (len(logits[0]), logits[0].dtype):
            raise ValueError(
                f"tiles of logits must be alike in rows and dtype, got {tuple(tile.shape)}, {tile.dtype}"
            )
        if i < len(logits) - 1 and tile.size(1) % 64:
            raise ValueError(
                f"a tile before the last must be a multiple of 64 words wide, got {tile.size(1)}"
            )
    require_targets(len(logits[0]), sum(tile.size(1) for tile in logits), bias, targets)


def _require_factors(h: Tensor, weight: Tensor, grad_dtype: torch.dtype, dtype: torch.dtype) -> None:
    require_floats(h=h, weight=weight)
    if h.ndim != 2 or weight.ndim != 2 or h.shape[1:] != weight.shape[1:] or 0 in (*h.shape, len(weight)):
        raise ValueError(
            f"features (N, H) and weights (V, H) must fit, all sizes >= 1, got {tuple(h.shape)} and "
            f"{tuple(weight.shape)}"
        )
    if grad_dtype not in (torch.float32, dtype):
        raise ValueError(f"the gradient of the weights must be fp32 or {dtype}, got {grad_dtype}")


def require_targets(N: int, V: int, bias: Tensor | None, targets: Tensor) -> None:
    require_floats(bias=bias)
    if bias is not None and (bias.shape != (V,) or not bias.is_contiguous()):
        raise ValueError(f"the bias must be contiguous ({V}), got bias {tuple(bias.shape)}")
    if targets.dtype != torch.int64 or targets.device.type != "cpu" or targets.shape != (N,):
        raise ValueError(
            f"targets must be {N} int64 ids on the CPU, got {targets.dtype} {tuple(targets.shape)} on {targets.device}"
        )
    if not targets.is_contiguous():
        raise ValueError(f"targets must be contiguous, got strides {targets.stride()}")
    if N and int(targets.max()) >= V:
        raise ValueError(
            f"a target must be below V = {V}, or negative where it is ignored, got {int(targets.max())}"
        )
