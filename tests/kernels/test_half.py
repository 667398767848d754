"""Products in fp16 against float64: as exact as their rounded factors and short sums allow, and more so than bf16."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from hornn.kernels import cross_entropy, half, library
from hornn.kernels.cross_entropy import (
    LinearCrossEntropy,
    LogitMemory,
    differentiate,
    differentiate_in_half,
    native_nll,
)
from hornn.kernels.half import half_product, has_fp16
from kernels.tolerance import needs_compiler

needs_fp16 = pytest.mark.skipif(
    not has_fp16(), reason="needs a CPU with AVX-512 FP16, and a compiler that knows it"
)
SIZES = (1, 8, 65, 130)


@pytest.fixture
def fp16() -> None:
    if not has_fp16():
        pytest.skip("needs a CPU with AVX-512 FP16, and a compiler that knows it")


def matrix(rows: int, columns: int, transposed: bool, dtype: torch.dtype = torch.float32) -> Tensor:
    x = torch.randn(columns, rows).mT if transposed else torch.randn(rows, columns)
    return x.to(dtype)


def distance(found: Tensor, expected: Tensor) -> float:
    """Relative, in the Frobenius norm."""
    assert found.isfinite().all()
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.usefixtures("fp16")
@pytest.mark.parametrize("transposed", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize(("left", "out"), [(torch.float32, torch.float16), (torch.float16, torch.float32)])
@pytest.mark.parametrize("K", [1, 31, 33, 641, 1300])
def test_products(K: int, left: torch.dtype, out: torch.dtype, transposed: tuple[bool, bool]) -> None:
    """A factor is off by 2^-11 of it, an addition by 2^-11 of the sum so far, which is below the sum of all sizes."""
    torch.manual_seed(0)
    for M, N in itertools.product(SIZES, (*SIZES, 200)):
        a, b = matrix(M, K, transposed[0], left), matrix(K, N, transposed[1])
        found = half_product(a, b, torch.full((M, N), torch.nan, dtype=out), 0.5)
        a, b = a.double(), b.double()
        error = found.double() - 0.5 * (a @ b)
        most = (min(K, 32) + 3) * 2.0**-11 * (
            0.5 * a.abs() @ b.abs()
        ) + 1e-6  # below 6e-5 fp16 has fewer bits
        assert (error.abs() <= most).all()
        usual = 0.5 * (a.square() @ b.square()).sqrt()  # the size of a sum of terms of any sign
        assert (error / usual.clamp(min=0.01)).square().mean().sqrt() < 2e-3


@pytest.mark.usefixtures("fp16")
def test_products_do_not_depend_on_the_number_of_threads() -> None:
    before = torch.get_num_threads()
    for M, N in ((70, 300), (300, 70)):
        a, b = torch.randn(M, 900), torch.randn(900, N)
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(half_product(a, b, torch.empty(M, N)))
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])
    torch.set_num_threads(before)


@pytest.mark.usefixtures("fp16")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("tile", [10_048, 64])
def test_gradients_of_the_output_layer(monkeypatch: pytest.MonkeyPatch, tile: int, biased: bool) -> None:
    """Twice as near to float64 as bf16 is, from the start of a training (all words alike) to its end (sure of them)."""
    monkeypatch.setattr(cross_entropy, "WORDS", tile)
    torch.manual_seed(0)
    N, H, V = 120, 40, 3001
    memory = LogitMemory()
    for size in (0.01, 1.0, 8.0):
        h, weight = torch.rand(N, H), size * torch.randn(V, H) / H**0.5
        bias = torch.randn(V) if biased else None
        targets = torch.randint(-1, V, (N,))
        exact = differentiate(
            h.double(), weight.double(), None if bias is None else bias.double(), targets, 1 / N
        )
        found = differentiate_in_half(h, weight, bias, targets, 1 / N, memory)
        coarse = differentiate(h, weight, bias, targets, 1 / N, weight.bfloat16())
        assert float(found[0]) == pytest.approx(float(exact[0]), rel=1e-4)
        for ours, theirs, expected in zip(found[1:], coarse[1:], exact[1:], strict=True):
            if expected is None:
                assert ours is None
                continue
            assert ours is not None
            assert ours.dtype == torch.float32
            assert distance(ours, expected) < max(2e-3, 0.5 * distance(theirs, expected))


@pytest.mark.usefixtures("fp16")
def test_gradients_of_large_features() -> None:
    """Such as a ReLU's, in rows that have the same target one after the other."""
    torch.manual_seed(0)
    N, H, V = 64, 40, 300
    h, weight, targets = 1000 * torch.rand(N, H), 1e-3 * torch.randn(V, H), torch.zeros(N, dtype=torch.int64)
    exact = differentiate(h.double(), weight.double(), None, targets, 1 / N)
    found = differentiate_in_half(h, weight, None, targets, 1 / N)
    for ours, expected in zip(found[1:3], exact[1:3], strict=True):
        assert ours is not None
        assert expected is not None
        assert distance(ours, expected) < 2e-3


@pytest.mark.usefixtures("fp16")
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("word", [0, 299])
def test_a_feature_that_is_not_finite_makes_the_sum_so(word: int, value: float) -> None:
    torch.manual_seed(0)
    h, weight = torch.randn(9, 40), torch.randn(300, 40)
    h[4, 7] = value
    total, *_ = differentiate_in_half(h, weight, torch.zeros(300), torch.full((9,), word), 1 / 9)
    assert not total.isfinite()


@pytest.mark.usefixtures("fp16")
def test_padding_has_no_gradient() -> None:
    h, weight = torch.randn(9, 5, requires_grad=True), torch.randn(70, 5, requires_grad=True)
    loss = LinearCrossEntropy.apply(h, weight, None, torch.full((9,), -1), 0.1, None, True, None, True)
    loss.backward()
    assert float(loss.detach()) == 0
    assert not h.grad.any()
    assert not weight.grad.any()


@pytest.mark.usefixtures("fp16")
def test_scores_of_logits_in_fp16() -> None:
    torch.manual_seed(0)
    logits, targets = (4 * torch.randn(20, 1001)).half(), torch.randint(1001, (20,))
    expected = torch.nn.functional.cross_entropy(logits.double(), targets, reduction="none")
    torch.testing.assert_close(native_nll(logits, None, targets), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("fp16")
@pytest.mark.parametrize(
    ("left", "right", "out", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(4, 2), torch.zeros(2, 2), r"got \(2, 3\), \(4, 2\)"),
        (torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(2, 3), r"\(2, 3\)$"),
        (torch.zeros(2, 3), torch.zeros(3, 4), torch.zeros(4, 2).mT, "contiguous"),
        (torch.zeros(2, 0), torch.zeros(0, 4), torch.zeros(2, 4), r"\(2, 0\)"),
        (torch.zeros(2, 3).double(), torch.zeros(3, 4), torch.zeros(2, 4), "got torch.float64"),
        (torch.zeros(2, 3), torch.zeros(3, 4).half(), torch.zeros(2, 4), "torch.float16"),
    ],
)
def test_products_that_do_not_fit(left: Tensor, right: Tensor, out: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        half_product(left, right, out)


@needs_compiler
def test_a_machine_without_fp16_says_so(kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesser machines have none; where nothing was compiled there is none either."""
    if not has_fp16():
        with pytest.raises(
            ValueError, match="logits must be fp32 or bf16 on the CPU, or fp16 on one that has it"
        ):
            native_nll(torch.zeros(2, 3).half(), None, torch.zeros(2, dtype=torch.int64))
    monkeypatch.setattr(half, "why_not", lambda: "no compiler")
    assert not has_fp16()
    assert library.why_not() is None
