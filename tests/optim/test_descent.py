"""The thesis's gradient descent against numbers worked by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hornn.kernels import library as kernels
from hornn.kernels.weight_copies import Bf16Copy
from hornn.optim.descent import MomentumSGD
from hornn.optim.divergence import DivergenceError

Arrays = list[NDArray[np.float64]]


def descend(
    weights: Arrays,
    gradients: list[Arrays],
    lr: float,
    mu: float,
    gamma: float,
    c: float | None,
    clip: float | None,
    mode: str,
) -> Arrays:
    """Thesis, 6.1.2, 6.1.3, 6.1.5: dw clipped, M = mu M - lr dw, w = w + M - lr gamma w, |w_i| <= c by rows."""
    w = [weight.copy() for weight in weights]
    m = [np.zeros_like(weight) for weight in weights]
    for step in gradients:
        dw = [g.copy() for g in step]
        if clip is not None and mode == "element":
            for g in dw:
                for i in np.ndindex(g.shape):
                    g[i] = max(-clip, min(clip, g[i]))
        if clip is not None and mode == "norm":
            norm = math.sqrt(sum(float((g**2).sum()) for g in dw))
            if norm > clip:
                dw = [g * clip / norm for g in dw]
        for k in range(len(w)):
            m[k] = mu * m[k] - lr * dw[k]
            w[k] = w[k] + m[k] - lr * gamma * w[k]
            if c is not None and w[k].ndim > 1:
                for i in np.ndindex(w[k].shape[:-1]):
                    length = math.sqrt(float((w[k][i] ** 2).sum()))
                    if length > c:
                        w[k][i] = w[k][i] * c / length
    return w


@pytest.mark.parametrize("mode", ["element", "norm"])
@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("c", [None, 1.1])
@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize("mu", [0.0, 0.9])
@pytest.mark.parametrize("recorded", [False, True])
def test_momentum_sgd_is_the_thesis(
    recorded: bool, mu: float, gamma: float, c: float | None, clip: float | None, mode: str
) -> None:
    """Also as a GPU records it, whose learning rate is a tensor."""
    draw = np.random.default_rng(0)
    shapes = [(4, 3), (2, 3, 3), (5,)]
    weights = [draw.normal(size=shape) for shape in shapes]
    gradients = [[draw.normal(size=shape) for shape in shapes] for _ in range(6)]
    parameters = [torch.nn.Parameter(torch.from_numpy(weight.copy())) for weight in weights]
    optimizer = MomentumSGD(
        parameters, lr=0.3, momentum=mu, weight_decay=gamma, max_norm=c, clip=clip, clip_mode=mode
    )
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = torch.from_numpy(gradient.copy())
        if recorded:
            grad_norm = float(optimizer.step_on_device([torch.tensor(0.3, dtype=torch.float64)]))
        else:
            optimizer.step()
            grad_norm = optimizer.grad_norm
        assert grad_norm == pytest.approx(math.sqrt(sum((g**2).sum() for g in step)), rel=1e-12)
    assert optimizer.param_groups[0]["lr"] == 0.3
    expected = descend(weights, gradients, 0.3, mu, gamma, c, clip, mode)
    for parameter, weight in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), weight, rtol=1e-12, atol=1e-14)


def test_two_updates_by_hand() -> None:
    """w = 1, dw = 2 then -8 with clip 5: M = -1, w = 0 - 0.05; M = -0.9 + 2.5, w = -0.05 + 1.6 + 0.0025."""
    w = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    optimizer = MomentumSGD([w], lr=0.5, momentum=0.9, weight_decay=0.1, clip=5.0)
    w.grad = torch.tensor([2.0], dtype=torch.float64)
    optimizer.step()
    assert w.item() == pytest.approx(1.0 - 1.0 - 0.05)
    w.grad = torch.tensor([-8.0], dtype=torch.float64)
    optimizer.step()
    assert w.item() == pytest.approx(-0.05 + (-0.9 + 2.5) + 0.5 * 0.1 * 0.05)


def test_a_group_may_be_spared_the_bound() -> None:
    free, bound = (torch.nn.Parameter(torch.full((2, 2), 3.0)) for _ in range(2))
    optimizer = MomentumSGD([{"params": [bound]}, {"params": [free], "max_norm": None}], lr=0.1, max_norm=1.0)
    for parameter in (free, bound):
        parameter.grad = torch.zeros(2, 2)
    optimizer.step()
    assert torch.equal(free, torch.full((2, 2), 3.0))
    torch.testing.assert_close(bound, torch.full((2, 2), 0.5**0.5))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_stops_before_the_update(value: float) -> None:
    w = torch.nn.Parameter(torch.ones(3))
    w.grad = torch.tensor([0.0, value, 1.0])
    optimizer = MomentumSGD([w], lr=0.1)
    with pytest.raises(DivergenceError, match="not finite"):
        optimizer.step()
    assert torch.equal(w, torch.ones(3))


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"lr": 0}, "optimizer.lr must be > 0, got 0"),
        ({"lr": math.nan}, "optimizer.lr must be > 0, got nan"),
        ({"momentum": 1}, r"optimizer.momentum must be in \[0, 1\), got 1"),
        ({"momentum": -0.1}, r"optimizer.momentum must be in \[0, 1\), got -0.1"),
        ({"weight_decay": -1}, "optimizer.weight_decay must be >= 0, got -1"),
        ({"max_norm": 0}, "optimizer.max_norm must be > 0 or null, got 0"),
        ({"clip": 0}, "optimizer.clip must be > 0 or null, got 0"),
        ({"clip_mode": "both"}, "optimizer.clip_mode must be one of element, norm, got 'both'"),
    ],
)
def test_constants_out_of_range(constants: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MomentumSGD([torch.nn.Parameter(torch.ones(1))], **{"lr": 0.1, **constants})


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_an_update_is_seen_by_the_copy_in_bf16(momentum: float) -> None:
    """A weight's version says that it changed; with the fused step alone the copy would stay as it was."""
    weight = torch.nn.Parameter(torch.ones(3, 4))
    copy = Bf16Copy(weight)
    before = copy.read().clone()
    weight.grad = torch.ones(3, 4)
    MomentumSGD([weight], lr=0.5, momentum=momentum).step()
    assert copy.read().equal(weight.detach().bfloat16())
    assert not copy.read().equal(before)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("mode", ["element", "norm"])
@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize("mu", [0.0, 0.9])
def test_a_gradient_of_some_rows_is_one_of_zeros_elsewhere(
    mu: float, gamma: float, mode: str, clip: float | None, native: bool
) -> None:
    if native and kernels.why_not():
        pytest.skip(str(kernels.why_not()))
    torch.manual_seed(0)
    dtype = torch.float32 if native else torch.float64
    weight = torch.nn.Parameter(torch.randn(6, 3, dtype=dtype))
    other = torch.nn.Parameter(torch.randn(4, 3, dtype=dtype))
    twins = [torch.nn.Parameter(weight.detach().clone()), torch.nn.Parameter(other.detach().clone())]
    constants: dict[str, Any] = {"momentum": mu, "weight_decay": gamma, "clip": clip, "clip_mode": mode}
    ours = MomentumSGD([weight, other], lr=0.3, **constants)
    ours.native = native
    dense = MomentumSGD(twins, lr=0.3, **constants)
    for _ in range(4):
        rows, values = torch.randint(6, (5,)), torch.randn(5, 3, dtype=dtype)
        weight.grad = torch.sparse_coo_tensor(rows[None], values, weight.shape, check_invariants=True)
        other.grad = torch.randn_like(other)
        twins[0].grad, twins[1].grad = weight.grad.to_dense(), other.grad.clone()
        ours.step()
        dense.step()
        assert ours.grad_norm == pytest.approx(float(dense.grad_norm), rel=1e-6)
        for found, expected in zip([weight, other], twins, strict=True):
            torch.testing.assert_close(found, expected)
