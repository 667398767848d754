"""The units of pieces against their definitions, and the perceptron's dropout."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.base import Cell
from hornn.cells.mlp import UNITS, Layer, LpUnits, MaxoutUnits, Mlp, build_units
from reference import deep as reference
from reference.cases import draw, seeded

WIDTH, K, N = 5, 3, 4


def apply(transcription: Any, a: Tensor, **arguments: Any) -> Tensor:
    """The transcription, which reads one vector, applied to each row of a (N, K * WIDTH)."""
    return torch.stack([torch.from_numpy(transcription(row.numpy(), K, **arguments)) for row in a])


def test_maxout_is_the_largest_piece() -> None:
    a = draw(seeded(0), N, K * WIDTH)
    assert_close(MaxoutUnits(WIDTH, K)(a), apply(reference.maxout, a), rtol=0, atol=0)


@pytest.mark.parametrize("p", [1, 1.0, 1.5, 2.0, 3.0, 17.5])
def test_lp_is_the_normalised_norm(p: float) -> None:
    a = draw(seeded(1), N, K * WIDTH)
    assert_close(LpUnits(WIDTH, K, p)(a), apply(reference.lp, a, p=p), rtol=1e-12, atol=1e-12)


def test_lp_of_large_order_is_the_largest_magnitude_and_does_not_overflow() -> None:
    a = 1e30 * draw(seeded(2), N, K * WIDTH)
    largest = a.unflatten(-1, (K, WIDTH)).abs().amax(-2)
    assert_close(LpUnits(WIDTH, K, 1e4)(a), largest, rtol=1e-3, atol=0)


def test_one_linear_piece_repeated_is_that_piece() -> None:
    piece = draw(seeded(3), N, WIDTH)
    assert_close(MaxoutUnits(WIDTH, K)(piece.repeat(1, K)), piece, rtol=0, atol=0)
    assert_close(LpUnits(WIDTH, K, 2.5)(piece.repeat(1, K)), piece.abs(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("p", [1.001, 1.5, 2.0, 40.0])
def test_learned_orders_start_at_the_given_one(p: float) -> None:
    units, a = LpUnits(WIDTH, K, p, learn_p=True).double(), draw(seeded(4), N, K * WIDTH)
    assert_close(units(a), LpUnits(WIDTH, K, p)(a), rtol=1e-12, atol=0)
    with torch.no_grad():
        units.b_p.copy_(torch.linspace(-40, 40, WIDTH))
    assert (units.p >= 1).all()
    assert_close(units(a), apply(reference.lp, a, p=units.p.detach().numpy()), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("learn_p", [False, True])
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_gradients_of_lp_are_the_derivatives(p: float, learn_p: bool) -> None:
    units = LpUnits(WIDTH, K, p, learn_p).double()
    leaves = [draw(seeded(5), N, K * WIDTH).requires_grad_(), *units.parameters()]
    assert torch.autograd.gradcheck(lambda a, *_: units(a), leaves)
    assert torch.autograd.gradgradcheck(lambda a, *_: units(a), leaves)


@pytest.mark.parametrize("learn_p", [False, True])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 7.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lp_of_zeros_is_zero_with_gradient_zero(dtype: torch.dtype, p: float, learn_p: bool) -> None:
    units = LpUnits(WIDTH, K, p + learn_p, learn_p).to(dtype)
    a = torch.zeros(N, K * WIDTH, dtype=dtype, requires_grad=True)
    y = units(a)
    gradients = torch.autograd.grad(y.sum(), [a, *units.parameters()])
    assert not y.any()
    assert not any(gradient.any() for gradient in gradients)


def test_lp_with_some_pieces_at_zero_has_finite_gradients() -> None:
    units = LpUnits(WIDTH, K, 1.2, learn_p=True)
    a = torch.zeros(N, K * WIDTH)
    a[:, :WIDTH] = 1e-30
    a.requires_grad_()
    units(a).sum().backward()
    assert a.grad[:, :WIDTH].all()
    assert a.grad.isfinite().all()
    assert units.b_p.grad.isfinite().all()


def test_the_gradient_of_tied_pieces_goes_to_one_of_them() -> None:
    a = torch.zeros(1, K * WIDTH, requires_grad=True)
    MaxoutUnits(WIDTH, K)(a).sum().backward()
    assert_close(a.grad.view(K, WIDTH).sum(0), torch.ones(WIDTH))
    assert set(a.grad.unique().tolist()) == {0.0, 1.0}


def one_layer(dropout: float) -> Mlp:
    torch.manual_seed(0)
    return Mlp([Layer(build_units("activation", "tanh", WIDTH), Cell.weight(WIDTH, 4), dropout=dropout)])


def test_dropout_drops_and_rescales_in_training_alone() -> None:
    x = draw(seeded(6), 2000, 4).float()
    kept = one_layer(dropout=0.0)(x)
    mlp = one_layer(dropout=0.25)
    assert_close(mlp.eval()(x), kept, rtol=0, atol=0)
    dropped = mlp.train()(x)
    mask = dropped != 0
    assert abs(float(mask.float().mean()) - 0.75) < 0.02
    assert_close(dropped[mask], kept[mask] / 0.75)


def test_a_perceptron_without_layers_is_the_identity() -> None:
    x = draw(seeded(7), 2, 3)
    assert Mlp()(x) is x


@pytest.mark.parametrize("p", [0.99, 0, -1, 1e7, 1e39, math.inf, math.nan, "two", None, True])
def test_refuses_an_order_below_one(p: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"p must be a number >= 1 and at most 1e+06, got {p!r}")):
        LpUnits(WIDTH, K, p)


def test_refuses_to_learn_an_order_from_one_on() -> None:
    with pytest.raises(ValueError, match=r"p must be a number > 1 to be learned and at most .* got 1\.0"):
        LpUnits(WIDTH, K, 1.0, learn_p=True)


def test_refuses_unknown_units_and_names_the_known() -> None:
    with pytest.raises(ValueError, match=r"output_activation must be one of .*, got 'swish'") as caught:
        build_units("output_activation", "swish", WIDTH)
    assert all(known in str(caught.value) for known in UNITS)
