"""Softmax and cross entropy in one pass against autograd in float64: as a layer, and the native kernels alone."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

from hornn.kernels import cross_entropy
from hornn.kernels.cross_entropy import (
    LinearCrossEntropy,
    LogitMemory,
    differentiate,
    differentiate_natively,
    native_cross_entropy_,
    native_nll,
    transpose,
)
from hornn.kernels.packed import PackedWeight, linear_nll
from kernels.tolerance import needs_compiler


def score(logits: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Negative log-likelihoods (N), their sum's gradients by the logits and by the bias: float64, by autograd."""
    x = logits.double().requires_grad_()
    b = torch.zeros(x.size(1), dtype=torch.float64) if bias is None else bias.double()
    b.requires_grad_()
    nll = -(x + b).log_softmax(-1).gather(1, targets.clamp(min=0).unsqueeze(1)).squeeze(1) * (targets >= 0)
    return nll.detach(), *torch.autograd.grad(nll.sum(), [x, b])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("V", [1, 2, 15, 16, 17, 1001, 10_000])
def test_cross_entropy(kernels: None, V: int, biased: bool, dtype: torch.dtype) -> None:
    """fp32: 1e-6, some ten roundings. bf16 logits are read exactly; their gradient is rounded to 8 bits."""
    torch.manual_seed(0)
    logits = (3 * torch.randn(37, V)).to(dtype)
    bias = torch.randn(V, requires_grad=True) if biased else None
    targets = torch.randint(V, (37,))
    targets[[0, 20, 36]] = -1
    nll, grad, grad_bias = score(logits, bias.detach() if biased else None, targets)
    with torch.no_grad():
        torch.testing.assert_close(native_nll(logits, bias, targets), nll, rtol=1e-6, atol=1e-6)
        loss, found_bias = native_cross_entropy_([logits], bias, targets)
    assert loss.dtype == torch.float64
    assert float(loss) == pytest.approx(float(nll.sum()), rel=1e-6, abs=1e-12)
    half_a_bit = 2.0**-8 if dtype == torch.bfloat16 else 0.0
    torch.testing.assert_close(logits.double(), grad, rtol=half_a_bit, atol=1e-6)
    assert not logits[[0, 20, 36]].any()
    if biased:
        assert found_bias.dtype == torch.float32
        torch.testing.assert_close(found_bias.double(), grad_bias, rtol=1e-6, atol=1e-6)
    else:
        assert found_bias is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropy_of_extreme_logits(kernels: None, dtype: torch.dtype) -> None:
    logits = torch.tensor(
        [[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, -1e4], [-math.inf, 0.0, 1.0]], dtype=dtype
    )
    targets = torch.tensor([1, 0, 2, 1])
    nll, grad, _ = score(logits, None, targets)
    torch.testing.assert_close(native_nll(logits, None, targets), nll, rtol=1e-7, atol=0)
    loss, _ = native_cross_entropy_([logits], None, targets)
    assert float(loss) == pytest.approx(float(nll.sum()), rel=1e-7)
    torch.testing.assert_close(logits.double(), grad, rtol=2.0**-8, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropy_with_a_scaled_gradient(kernels: None, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    logits, bias, targets = (3 * torch.randn(9, 50)).to(dtype), torch.randn(50), torch.randint(50, (9,))
    nll, grad, grad_bias = score(logits, bias, targets)
    loss, found_bias = native_cross_entropy_([logits], bias, targets, 0.01)
    assert float(loss) == pytest.approx(float(nll.sum()), rel=1e-6)
    torch.testing.assert_close(logits.double(), 0.01 * grad, rtol=2.0**-8, atol=1e-8)
    torch.testing.assert_close(found_bias.double(), 0.01 * grad_bias, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("biased", [False, True])
def test_tiles_of_logits_give_what_one_matrix_gives(kernels: None, biased: bool) -> None:
    torch.manual_seed(0)
    logits, bias, targets = 3 * torch.randn(37, 300), torch.randn(300), torch.randint(300, (37,))
    targets[[0, 20]] = -1
    tiles = [tile.contiguous() for tile in logits.split([64, 192, 44], 1)]
    found = native_cross_entropy_(tiles, bias if biased else None, targets)
    expected = native_cross_entropy_([logits], bias if biased else None, targets)
    assert torch.equal(torch.cat(tiles, 1), logits)
    assert all(a is b or torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("N", "H"),
    [
        (7, 30),
        (20, 20),
        (41, 30),
        (300, 30),
        (520, 400),
    ],  # fewer rows than features, as many, .., bf16 transposed
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("V", [50, 1024, 3 * 1024 + 5])
def test_gradients_by_tiles_of_words(
    kernels: None, monkeypatch: pytest.MonkeyPatch, V: int, dtype: torch.dtype, N: int, H: int
) -> None:
    """fp32: sums of V or N rounded products. bf16: operands of 8 bits, here the same ones on both sides."""
    monkeypatch.setattr(cross_entropy, "WORDS", 1024)
    torch.manual_seed(0)
    h, weight, bias = torch.randn(N, H), torch.randn(V, H) / math.sqrt(H), torch.randn(V)
    targets = torch.randint(-1, V, (N,))
    copy = weight.bfloat16() if dtype == torch.bfloat16 else None
    memory = LogitMemory()
    for _ in range(2):
        found = differentiate_natively(h, weight, bias, targets, 0.1, copy, memory=memory)
        expected = differentiate(h, weight, bias, targets, 0.1, copy)
        rtol, atol = (2e-2, 2e-3) if copy is not None else (1e-4, 1e-5)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol)


def test_words_outside_of_a_cluster_by_tiles(kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "WORDS", 64)
    torch.manual_seed(0)
    V = 138
    h, weight, targets = torch.randn(9, 4), torch.randn(V, 4), torch.arange(9) + V - 9
    outside = torch.rand(9, V) < 0.5
    outside.scatter_(1, targets.unsqueeze(1), False)
    found = differentiate_natively(h, weight, None, targets, 1.0, outside=outside)
    expected = differentiate(h, weight, None, targets, 1.0, outside=outside)
    for ours, theirs in zip(found[:3], expected[:3], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_memory_of_logits_is_used_again_unless_it_is_still_in_use(kernels: None) -> None:
    memory = LogitMemory()
    address = memory.take(100, torch.float32).data_ptr()
    assert memory.take(60, torch.float32).data_ptr() == address
    held = memory.take(100, torch.float32).view(10, 10)[2:]
    assert memory.take(100, torch.float32).data_ptr() != address
    del held
    assert len(memory.take(200, torch.float32)) == 200
    assert memory.take(50, torch.bfloat16).dtype == torch.bfloat16
    memory.drop()
    assert memory.tensor is None


def test_gradients_that_are_kept_survive_the_next_loss(
    kernels: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "WORDS", 64)
    torch.manual_seed(0)
    h, weight = torch.randn(50, 40, requires_grad=True), torch.randn(100, 40, requires_grad=True)
    memory, found = LogitMemory(), []
    for targets in (torch.arange(50), torch.arange(50, 100)):
        loss = LinearCrossEntropy.apply(h, weight, None, targets, 1.0, None, True, memory)
        found.append(torch.autograd.grad(loss, weight)[0])
    for grad, targets in zip(found, (torch.arange(50), torch.arange(50, 100)), strict=True):
        loss = LinearCrossEntropy.apply(h, weight, None, targets, 1.0)
        torch.testing.assert_close(grad, torch.autograd.grad(loss, weight)[0], rtol=1e-4, atol=1e-5)


def test_cross_entropy_does_not_hide_a_nan(kernels: None) -> None:
    logits = torch.zeros(2, 40)
    logits[1, 30] = math.nan
    found = native_nll(logits, None, torch.tensor([1, 2]))
    assert found.isnan().tolist() == [False, True]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("N", "H", "V"), [(1, 1, 1), (37, 50, 2), (5, 33, 17), (26, 50, 1001), (3, 5000, 40)]
)
def test_scores_without_logits(kernels: None, N: int, H: int, V: int, biased: bool) -> None:
    """Sums of H rounded products, as in a matrix product of torch's."""
    torch.manual_seed(0)
    h, weight, targets = torch.randn(N, H), torch.randn(V, H) / math.sqrt(H), torch.randint(V, (N,))
    bias = torch.randn(V) if biased else None
    targets[N // 2 + 1 :: 3] = -1
    expected, *_ = score(h.double() @ weight.double().mT, bias, targets)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found = linear_nll(h, PackedWeight(weight), bias, targets)
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, expected, rtol=2e-6, atol=2e-6)
        assert torch.equal(found, linear_nll(h, PackedWeight(weight), bias, targets))
    assert not linear_nll(h, PackedWeight(weight), bias, torch.full_like(targets, -1)).any()


def test_scores_without_logits_of_extremes(kernels: None) -> None:
    """Far and infinite logits; a NaN, in the features or in a word's weights, is not hidden."""
    h = torch.tensor([[1.0], [-1.0], [0.0], [math.nan]])
    weight = torch.linspace(-1e4, 1e4, 301).unsqueeze(1)
    targets = torch.tensor([0, 0, 7, 7])
    expected, *_ = score(h.double() @ weight.double().mT, None, targets)
    torch.testing.assert_close(
        linear_nll(h, PackedWeight(weight), None, targets), expected, rtol=1e-6, atol=1e-6, equal_nan=True
    )
    weight[200] = math.nan
    assert linear_nll(h, PackedWeight(weight), None, targets).isnan().all()
    bias = torch.zeros(1000)
    bias[3:990] = -math.inf  # more words than are summed up at once
    found = linear_nll(
        torch.zeros(4, 1), PackedWeight(torch.ones(1000, 1)), bias, torch.tensor([0, 1, 999, 4])
    )
    assert found.tolist() == pytest.approx([math.log(13)] * 3 + [math.inf])


def test_scores_without_logits_follow_the_weight(kernels: None) -> None:
    torch.manual_seed(0)
    h, weight, targets = torch.randn(5, 8), torch.randn(30, 8), torch.randint(30, (5,))
    packed = PackedWeight(weight)

    def check() -> None:
        expected, *_ = score(h.double() @ weight.double().mT, None, targets)
        torch.testing.assert_close(linear_nll(h, packed, None, targets), expected, rtol=2e-6, atol=2e-6)

    check()
    first = packed.read()
    assert packed.read() is first
    weight.mul_(2)
    check()
    weight.data = weight.data.flip(0)
    check()
    packed.drop()
    check()


@needs_compiler
@pytest.mark.parametrize(
    ("h", "weight", "bias", "targets", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(5, 4), None, torch.tensor([0, 1]), "do not fit"),
        (torch.zeros(2, 3).double(), torch.zeros(5, 3), None, torch.tensor([0, 1]), "float64 on cpu for h"),
        (torch.zeros(2, 3), torch.zeros(5, 3), torch.zeros(4), torch.tensor([0, 1]), r"bias \(4,\)"),
        (torch.zeros(2, 3), torch.zeros(5, 3), None, torch.tensor([0, 5]), "below V = 5"),
        (torch.zeros(2, 3), torch.zeros(5, 3), None, torch.tensor([0]), "targets must be 2 int64"),
    ],
)
def test_scores_without_logits_refuse(
    h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        linear_nll(h, PackedWeight(weight), bias, targets)


def test_cross_entropy_does_not_depend_on_the_number_of_threads(kernels: None) -> None:
    torch.manual_seed(0)
    logits, bias, targets = torch.randn(70, 333), torch.randn(333), torch.randint(333, (70,))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        own = logits.clone()
        found.append([own, *native_cross_entropy_([own], bias, targets)])
    assert all(map(torch.equal, *found))


@needs_compiler
@pytest.mark.parametrize(
    ("logits", "bias", "targets", "message"),
    [
        (torch.zeros(2, 3), None, torch.tensor([0, 3]), "a target must be below V = 3, .* got 3"),
        (
            torch.zeros(2, 3).double(),
            None,
            torch.tensor([0, 1]),
            "logits must be fp32 or bf16 .* got torch.float64",
        ),
        (torch.zeros(3, 2).mT, None, torch.tensor([0, 1]), "contiguous"),
        (torch.zeros(2, 3), torch.zeros(2), torch.tensor([0, 1]), r"bias \(2,\)"),
        (torch.zeros(2, 3), torch.zeros(3).double(), torch.tensor([0, 1]), "float64 on cpu for bias"),
        (
            torch.zeros(2, 3),
            None,
            torch.tensor([0]),
            r"targets must be 2 int64 ids .* got torch.int64 \(1,\)",
        ),
        (torch.zeros(2, 3), None, torch.tensor([0, 1], dtype=torch.int32), "got torch.int32"),
    ],
)
def test_cross_entropy_refuses(logits: Tensor, bias: Tensor | None, targets: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        native_nll(logits, bias, targets)
    with pytest.raises(ValueError, match=message):
        native_cross_entropy_([logits], bias, targets)


@needs_compiler
@pytest.mark.parametrize(
    ("widths", "message"),
    [([63, 2], "multiple of 64 words wide, got 63"), ([64, 0], r"V >= 1, got \(2, 0\)")],
)
def test_tiles_that_do_not_fit(widths: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        native_cross_entropy_([torch.zeros(2, width) for width in widths], None, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="alike in rows and dtype"):
        native_cross_entropy_([torch.zeros(2, 64), torch.zeros(3, 64)], None, torch.tensor([0, 1]))


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (8, 8), (33, 8), (100, 41), (400, 1001)])
def test_transpose(kernels: None, shape: tuple[int, int]) -> None:
    x = torch.randn(shape).bfloat16()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found = transpose(x)
        assert found.is_contiguous()
        assert torch.equal(found, x.mT)


def test_transpose_refuses() -> None:
    for x in (torch.zeros(2, 3), torch.zeros(2, 3).bfloat16().mT, torch.zeros(6).bfloat16()):
        with pytest.raises(ValueError, match="only a contiguous bf16 matrix on the CPU"):
            transpose(x)


@pytest.mark.parametrize("bias", [False, True])
def test_linear_cross_entropy_is_torch_s(bias: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    rows, H, V = 150, 6, 12  # more than two blocks of the forward pass
    h = torch.randn(rows, H, generator=generator, dtype=torch.float64)
    weight = torch.randn(V, H, generator=generator, dtype=torch.float64)
    b = torch.randn(V, generator=generator, dtype=torch.float64) if bias else None
    targets = torch.randint(-1, V, (rows,), generator=generator)
    leaves = [tensor.requires_grad_() for tensor in (h, weight, b) if tensor is not None]
    ours = LinearCrossEntropy.apply(h, weight, b, targets, 1.0)
    theirs = F.cross_entropy(F.linear(h, weight, b), targets, ignore_index=-1, reduction="sum")
    assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    grads = [torch.autograd.grad(1.7 * loss, leaves) for loss in (ours, theirs)]
    assert_close(grads[0], grads[1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_linear_cross_entropy_gradcheck(bias: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    h = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    weight = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    b = [torch.randn(5, generator=generator, dtype=torch.float64)] if bias else []
    targets = torch.tensor([0, 4, -1, 2, 2, 3, 1])

    def loss(h: Tensor, weight: Tensor, b: Tensor | None = None) -> Tensor:
        return LinearCrossEntropy.apply(h, weight, b, targets, 1.0)

    assert torch.autograd.gradcheck(loss, [tensor.requires_grad_() for tensor in (h, weight, *b)])
