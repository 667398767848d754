"""Norms do not lose what a sum in fp32 loses."""

import pytest
import torch

from hornn.norm import norm, norm_over_columns


def test_the_norm_of_millions_of_numbers_is_that_in_float64() -> None:
    torch.manual_seed(0)
    grads = [torch.randn(10_000, 400), torch.randn(100_000), torch.randn(3, 5, 7)]
    exact = torch.cat([grad.flatten().double() for grad in grads]).norm()
    assert float(norm(grads)) == pytest.approx(float(exact), rel=1e-8)
    assert float(norm_over_columns(grads[0])) == pytest.approx(float(grads[0].double().norm()), rel=1e-8)


def test_a_norm_keeps_what_is_not_finite() -> None:
    assert torch.isnan(norm([torch.ones(2, 2), torch.tensor([[1.0, float("nan")]])]))
    assert torch.isinf(norm([torch.tensor([float("inf"), 1.0])]))
