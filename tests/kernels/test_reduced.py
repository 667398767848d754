"""Products in 16 bits against float64: as exact as their rounded factors and sums allow."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from hornn.kernels import library, reduced
from hornn.kernels.cross_entropy import (
    LinearCrossEntropy,
    LogitMemory,
    differentiate,
    differentiate_reduced,
    native_nll,
)
from hornn.kernels.reduced import multiplies_in, reduced_product
from kernels.tolerance import needs_compiler

SIZES = (1, 8, 50, 65, 130)


@pytest.fixture(params=[torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Each in which this machine multiplies."""
    if not is_there(request.param):
        pytest.skip(f"this machine, or its compiler, does not multiply in {request.param}")
    result: torch.dtype = request.param
    return result


@pytest.fixture
def fp16() -> torch.dtype:
    if not is_there(torch.float16):
        pytest.skip("needs a CPU with AVX-512 FP16, and a compiler that knows it")
    return torch.float16


def is_there(dtype: torch.dtype) -> bool:
    """Whether the product is there, also where torch's is faster."""
    if library.why_not() is not None:
        return False
    return bool(library.operators().has_fp16() if dtype == torch.float16 else library.operators().has_bf16())


def matrix(rows: int, columns: int, transposed: bool, dtype: torch.dtype = torch.float32) -> Tensor:
    x = torch.randn(columns, rows).mT if transposed else torch.randn(rows, columns)
    return x.to(dtype)


def distance(found: Tensor, expected: Tensor) -> float:
    """Relative, in the Frobenius norm."""
    assert found.isfinite().all()
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("transposed", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("rounded", ["left", "out"])
@pytest.mark.parametrize("K", [1, 2, 31, 33, 641, 1300])
def test_products(K: int, rounded: str, dtype: torch.dtype, transposed: tuple[bool, bool]) -> None:
    """A factor is off by 2^-11 of it in fp16, by 2^-8 in bf16; so is the result of a piece, where `out` is `dtype`.

    In fp16 an addition is off by 2^-11 of the sum so far, which is below the sum of all sizes.
    """
    torch.manual_seed(0)
    left, out = (dtype, torch.float32) if rounded == "left" else (torch.float32, dtype)
    half = dtype == torch.float16
    for M, N in itertools.product(SIZES, (*SIZES, 200)):
        a, b = matrix(M, K, transposed[0], left), matrix(K, N, transposed[1])
        found = reduced_product(a, b, torch.full((M, N), torch.nan, dtype=out), dtype, 0.5)
        a, b = a.double(), b.double()
        error = found.double() - 0.5 * (a @ b)
        roundings = 2 + (out == dtype) * -(-K // 640) + half * min(K, 32)
        most = (roundings + 0.01) * 2.0 ** (-11 if half else -8) * (0.5 * a.abs() @ b.abs())
        assert (error.abs() <= most + 1e-6).all()  # below 6e-5 fp16 has fewer bits
        usual = 0.5 * (a.square() @ b.square()).sqrt()  # the size of a sum of terms of any sign
        assert (error / usual.clamp(min=0.01)).square().mean().sqrt() < (2e-3 if half else 6e-3)


def test_a_product_is_added(dtype: torch.dtype) -> None:
    a, b, before = torch.randn(40, 700), torch.randn(700, 90), torch.randn(40, 90)
    found = reduced_product(a, b, before.clone(), dtype, 0.5, add=True)
    alone = reduced_product(a, b, torch.empty(40, 90), dtype, 0.5)
    torch.testing.assert_close(found, before + alone)


def test_a_left_factor_may_be_a_part_of_another(dtype: torch.dtype) -> None:
    """Its rows lie apart, or all in one place; the last of them do not fill a block."""
    whole, right = torch.randn(74, 90).to(dtype), torch.randn(66, 20)
    part = whole[:, 5:71]
    for left in (part, part[:1].expand(74, -1), part[:, :65], part[:, :64]):
        factors = left.contiguous().float(), right[: left.shape[1]]
        expected = reduced_product(*factors, torch.empty(74, 20), dtype)
        assert torch.equal(reduced_product(left, factors[1], torch.empty(74, 20), dtype), expected)


def test_factors_are_rounded_to_the_nearest(dtype: torch.dtype) -> None:
    x = torch.randn(20, 30)
    found = reduced_product(x, torch.eye(30), torch.empty(20, 30), dtype)
    assert torch.equal(found, x.to(dtype).float())
    found = reduced_product(torch.eye(20), x, torch.empty(20, 30), dtype)
    assert torch.equal(found, x.to(dtype).float())


def test_products_do_not_depend_on_the_number_of_threads(dtype: torch.dtype) -> None:
    before = torch.get_num_threads()
    for M, N in ((70, 300), (300, 70)):
        a, b = torch.randn(M, 900), torch.randn(900, N)
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(reduced_product(a, b, torch.empty(M, N), dtype))
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])
    torch.set_num_threads(before)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("spared", [False, True])
@pytest.mark.parametrize("H", [41, 80])
def test_gradients_of_the_output_layer(dtype: torch.dtype, H: int, spared: bool, biased: bool) -> None:
    """From the start of a training (all words alike) to its end (sure of them); the gradient in bf16 where spared.

    Of 80 features the spared gradient takes the place of used-up logits.
    In fp16 they are twice as near to float64 as torch's in bf16, in bf16 about as near.
    """
    if spared and dtype == torch.float16:
        pytest.skip("gradients in fp16 stay fp32")
    torch.manual_seed(0)
    N, V = 120, 3001
    memory = LogitMemory()
    for size in (0.01, 1.0, 8.0):
        h, weight = torch.rand(N, H), (size * torch.randn(V, H) / H**0.5).requires_grad_()
        if spared:
            weight.grad_dtype = torch.bfloat16
        bias = torch.randn(V) if biased else None
        targets = torch.randint(-1, V, (N,))
        exact = differentiate(
            h.double(), weight.detach().double(), None if bias is None else bias.double(), targets, 1 / N
        )
        weights = weight.detach().bfloat16()
        with torch.no_grad():
            found = differentiate_reduced(h, weight, bias, targets, 1 / N, dtype, memory)
            coarse = differentiate(h, weight, bias, targets, 1 / N, weights)
        assert float(found[0]) == pytest.approx(float(exact[0]), rel=1e-4 if dtype == torch.float16 else 1e-3)
        assert found[2].dtype == (torch.bfloat16 if spared else torch.float32)
        share = 0.5 if dtype == torch.float16 else 1.1
        for ours, theirs, expected in zip(found[1:], coarse[1:], exact[1:], strict=True):
            if expected is None:
                assert ours is None
                continue
            assert ours is not None
            assert distance(ours, expected) < max(2e-3, share * distance(theirs, expected))


def test_gradients_of_large_features(dtype: torch.dtype) -> None:
    """Such as a ReLU's, in rows that have the same target one after the other."""
    torch.manual_seed(0)
    N, H, V = 64, 40, 300
    h, weight, targets = 1000 * torch.rand(N, H), 1e-3 * torch.randn(V, H), torch.zeros(N, dtype=torch.int64)
    exact = differentiate(h.double(), weight.double(), None, targets, 1 / N)
    found = differentiate_reduced(h, weight, None, targets, 1 / N, dtype)
    coarse = differentiate(h, weight, None, targets, 1 / N, weight.bfloat16())
    for ours, theirs, expected in zip(found[1:3], coarse[1:3], exact[1:3], strict=True):
        assert ours is not None
        assert theirs is not None
        assert expected is not None
        most = 2e-3 if dtype == torch.float16 else 1.1 * distance(theirs, expected)
        assert distance(ours, expected) < most


@pytest.mark.parametrize(
    ("h", "weight", "said"),
    [
        (torch.zeros(8, 40), torch.zeros(50, 30), r"must fit.*\(8, 40\) and \(50, 30\)"),
        (torch.zeros(8, 0), torch.zeros(50, 0), "all sizes >= 1"),
        (torch.zeros(0, 40), torch.zeros(50, 40), "all sizes >= 1"),
        (torch.zeros(8, 40), torch.zeros(0, 40), "all sizes >= 1"),
        (torch.zeros(8, 40).bfloat16(), torch.zeros(50, 40), "bfloat16 on cpu for h"),
        (torch.zeros(8, 40), torch.zeros(50, 40).double(), "float64 on cpu for weight"),
    ],
)
def test_factors_that_do_not_fit_are_refused(
    h: Tensor, weight: Tensor, said: str, dtype: torch.dtype
) -> None:
    """Before a kernel reads behind them."""
    with pytest.raises(ValueError, match=said):
        differentiate_reduced(h, weight, None, torch.zeros(len(h), dtype=torch.int64), 1.0, dtype)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("word", [0, 299])
def test_a_feature_that_is_not_finite_makes_the_sum_so(word: int, value: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    h, weight = torch.randn(9, 40), torch.randn(300, 40)
    h[4, 7] = value
    total, *_ = differentiate_reduced(h, weight, torch.zeros(300), torch.full((9,), word), 1 / 9, dtype)
    assert not total.isfinite()


def test_padding_has_no_gradient(dtype: torch.dtype) -> None:
    h, weight = torch.randn(9, 5, requires_grad=True), torch.randn(70, 5, requires_grad=True)
    loss = LinearCrossEntropy.apply(h, weight, None, torch.full((9,), -1), 0.1, None, True, None, dtype)
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


@pytest.mark.parametrize(
    ("left", "right", "out", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(4, 2), torch.zeros(2, 2), r"got \(2, 3\), \(4, 2\)"),
        (torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(2, 3), r"\(2, 3\)$"),
        (torch.zeros(2, 3), torch.zeros(3, 4), torch.zeros(4, 2).mT, "contiguous"),
        (torch.zeros(2, 0), torch.zeros(0, 4), torch.zeros(2, 4), r"\(2, 0\)"),
        (torch.zeros(2, 3).double(), torch.zeros(3, 4), torch.zeros(2, 4), "got torch.float64"),
        (torch.zeros(2, 3), torch.zeros(3, 4).half(), torch.zeros(2, 4), "torch.float16"),
        (torch.zeros(2, 3, device="meta"), torch.zeros(3, 4), torch.zeros(2, 4), "on the CPU"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_that_do_not_fit(
    left: Tensor, right: Tensor, out: Tensor, message: str, dtype: torch.dtype
) -> None:
    with pytest.raises(ValueError, match=message):
        reduced_product(left, right, out, dtype)


def test_products_in_another_dtype() -> None:
    x = torch.zeros(2, 2)
    with pytest.raises(ValueError, match=r"products in torch\.float32, fp16 or bf16"):
        reduced_product(x, x, x.clone(), torch.float32)
    with pytest.raises(ValueError, match=r"got torch\.float16, torch\.float32 and torch\.float32"):
        reduced_product(x.half(), x, x.clone(), torch.bfloat16)


@needs_compiler
def test_a_machine_without_fp16_says_so(kernels: None) -> None:
    if not is_there(torch.float16):
        with pytest.raises(
            ValueError, match="logits must be fp32 or bf16 on the CPU, or fp16 on one that has it"
        ):
            native_nll(torch.zeros(2, 3).half(), None, torch.zeros(2, dtype=torch.int64))


@needs_compiler
@pytest.mark.parametrize("has_amx", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_which_products_are_taken(compiled: bool, has_amx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours, where they are compiled and the machine has the instructions; in bf16 torch's where that alone uses AMX."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_amx)
    ours = library.operators().has_amx() or not has_amx
    if not compiled:
        monkeypatch.setattr(reduced, "why_not", lambda: "no compiler")
    assert multiplies_in(torch.float16) == (compiled and is_there(torch.float16))
    assert multiplies_in(torch.bfloat16) == (compiled and is_there(torch.bfloat16) and ours)
    assert not multiplies_in(torch.float32)
    assert library.why_not() is None
