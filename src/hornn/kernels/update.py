"""The native update of weights: the gradient's norm, the step of momentum descent, the noise of training."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hornn.kernels.library import operators, require_floats


def grad_norm(grads: Sequence[Tensor]) -> float:
    """The Euclidean norm of all `grads` (contiguous, fp32 or bf16) together; not finite if one of them is not."""
    require_floats(**{f"gradient {i}": g for i, g in enumerate(grads) if g.dtype != torch.bfloat16})
    _require_contiguous(grads)
    norm: float = operators().grad_norm(list(grads), torch.get_num_threads())
    return norm


@torch.no_grad()
def momentum_update_(
    params: Sequence[Tensor],
    momenta: Sequence[Tensor],
    grads: Sequence[Tensor],
    lr: float,
    momentum: float,
    decay: float,
    clip: float,
    scale: float,
    max_norm: float | None,
    copies: Sequence[Tensor] | None = None,
) -> None:
    """The update of `hornn.optim.descent.MomentumSGD` in one pass over the weights.

        g = clamp(scale g, -clip, clip)
        M <- momentum M - lr g
        w <- w (1 - lr decay) + M
        w_i <- w_i min(1, max_norm / |w_i|)     for each row of a tensor of two dimensions or more

    clip is infinite where there is none, max_norm None. Lists of contiguous fp32 tensors of equal shapes, else
    ValueError; a gradient may be bf16, and an empty one stands for zeros. `momenta` may be empty tensors where
    `momentum` is 0. `copies`, bf16 and of the parameters' shapes or empty, receive the new weights.
    """
    copies = [params[0].new_empty(0)] * len(params) if copies is None else copies
    lists = {"parameter": params, "momentum": momenta, "gradient": grads, "copy": copies}
    for kind, tensors in lists.items():
        if len(tensors) != len(params):
            raise ValueError(f"each {kind} must have the shape of its parameter")
        for i, (tensor, param) in enumerate(zip(tensors, params, strict=True)):
            needed = kind == "parameter" or (kind == "momentum" and momentum != 0)
            if kind == "copy" and tensor.numel() and tensor.dtype != torch.bfloat16:
                raise ValueError(f"each copy must be bf16, got {tensor.dtype}")
            if needed or (tensor.dtype != torch.bfloat16 and tensor.numel()):
                require_floats(**{f"{kind} {i}": tensor})
            if tensor.shape != param.shape and (needed or tensor.numel()):
                raise ValueError(f"each {kind} must have the shape of its parameter")
        _require_contiguous(tensors)
    operators().momentum_update(
        list(params),
        list(momenta),
        list(grads),
        list(copies),
        lr,
        momentum,
        decay,
        clip,
        scale,
        max_norm or 0.0,
        torch.get_num_threads(),
    )
    torch.autograd.graph.increment_version([*params, *momenta])


@torch.no_grad()
def momentum_update_rows_(
    param: Tensor,
    momentum: Tensor,
    rows: Tensor,
    grad: Tensor,
    lr: float,
    mu: float,
    decay: float,
    clip: float,
    scale: float,
) -> None:
    """`momentum_update_` of a matrix (V, H) whose gradient is zero but in some rows: grad (n, H) of `rows` (n).

    The rows ascend, int64. Without momentum, for which `momentum` may be empty, and decay the other rows stay as they
    are. ValueError for tensors that do not fit.
    """
    require_floats(weight=param, gradient=grad, momentum=momentum if mu else None)
    _require_contiguous([param, momentum, grad])
    if param.ndim != 2 or grad.shape != (len(rows), param.size(1)) or (mu and momentum.shape != param.shape):
        raise ValueError(
            f"weight {tuple(param.shape)}, momentum {tuple(momentum.shape)}, {len(rows)} rows and gradient "
            f"{tuple(grad.shape)} do not fit"
        )
    _require_rows(rows, len(param))
    if not (rows.diff() > 0).all():
        raise ValueError("rows must ascend, each named once")
    operators().momentum_update_rows(
        param,
        momentum if mu else param.new_empty(0),
        rows,
        grad,
        lr,
        mu,
        decay,
        clip,
        scale,
        torch.get_num_threads(),
    )
    torch.autograd.graph.increment_version([param, momentum])


@torch.no_grad()
def add_noise_(weight: Tensor, std: float, seed: int, rows: Tensor | None = None) -> None:
    """Add independent N(0, std^2) to every number of `weight`, or of the given `rows`, each named once.

    The noise of a row is a function of `seed` and the row's number. ValueError unless `weight` is contiguous fp32 on
    the CPU and not empty, and `rows` int64 numbers of its rows.
    """
    require_floats(weight=weight)
    _require_contiguous([weight])
    if not weight.numel() or (rows is not None and weight.ndim != 2):
        raise ValueError(
            f"noise is for a weight that is not empty, and with rows a matrix, got {tuple(weight.shape)}"
        )
    if rows is not None:
        _require_rows(rows, len(weight))
    operators().add_noise(torch.atleast_1d(weight), rows, std, seed, torch.get_num_threads())
    torch.autograd.graph.increment_version(weight)


def _require_rows(rows: Tensor, count: int) -> None:
    if not rows.numel():
        return
    if rows.dtype != torch.int64 or rows.ndim != 1 or rows.is_cuda or not rows.is_contiguous():
        raise ValueError(f"rows must be contiguous int64 on the CPU, got {rows.dtype} on {rows.device}")
    if not 0 <= int(rows.min()) <= int(rows.max()) < count:
        raise ValueError(f"rows must be from 0 to {count - 1}, got {int(rows.min())} to {int(rows.max())}")


def _require_contiguous(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if not tensor.is_contiguous():
            raise ValueError(f"the native update takes contiguous tensors, got strides {tensor.stride()}")
