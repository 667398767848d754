"""The native update against the optimizer as written, in float64; and its noise."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.kernels.update import add_noise_, grad_norm, momentum_update_, momentum_update_rows_
from hornn.optim.descent import MomentumSGD
from kernels.tolerance import error, needs_compiler

SHAPES = [(4, 3), (2, 3, 17), (5,), (1,), (40, 400), (33_333,)]


def test_grad_norm(kernels: None) -> None:
    torch.manual_seed(0)
    grads = [torch.randn(shape) for shape in SHAPES]
    expected = math.sqrt(sum(float(grad.double().square().sum()) for grad in grads))
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert grad_norm(grads) == pytest.approx(expected, rel=1e-12)
    grads[4][39, 399] = 1e30
    assert grad_norm(grads) == pytest.approx(1e30, rel=1e-6)
    for bad in (math.inf, -math.inf, math.nan):
        grads[4][39, 399] = bad
        assert not math.isfinite(grad_norm(grads))
    assert grad_norm([]) == 0


@pytest.mark.parametrize("clip_mode", ["element", "norm"])
@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("max_norm", [None, 1.1])
@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_update_is_momentum_sgd(
    kernels: None, momentum: float, decay: float, max_norm: float | None, clip: float | None, clip_mode: str
) -> None:
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in SHAPES]
    momenta = [torch.zeros(shape) for shape in SHAPES]
    reference = [torch.nn.Parameter(weight.double()) for weight in weights]
    optimizer = MomentumSGD(reference, 0.3, momentum, decay, max_norm, clip, clip_mode)
    versions = [weight._version for weight in weights]
    for _ in range(4):
        grads = [torch.randn(shape) for shape in SHAPES]
        for parameter, grad in zip(reference, grads, strict=True):
            parameter.grad = grad.double()
        optimizer.step()
        scale, bound = 1.0, clip or math.inf
        if clip and clip_mode == "norm":
            scale, bound = clip / grad_norm(grads), math.inf
        momentum_update_(weights, momenta, grads, 0.3, momentum, decay, bound, scale, max_norm)
    for weight, velocity, parameter in zip(weights, momenta, reference, strict=True):
        assert error(weight, parameter.detach()) < 1e-6
        if momentum:
            assert error(velocity, optimizer.state[parameter]["momentum"]) < 1e-6
    assert all(weight._version > before for weight, before in zip(weights, versions, strict=True))


def test_a_matrix_without_columns_has_no_norm_to_bound(kernels: None) -> None:
    """As of a part of width 0 in a cell of one's own."""
    empty, weight = torch.zeros(5, 0), torch.full((3, 2), 3.0)
    grads = [torch.zeros_like(each) for each in (empty, weight)]
    momentum_update_(
        [empty, weight], [torch.zeros_like(each) for each in grads], grads, 0.1, 0.9, 0.0, 1.0, 1.0, 1.0
    )
    assert_close(weight, torch.full((3, 2), math.sqrt(0.5)))
    momentum_update_rows_(
        empty, torch.zeros(5, 0), torch.tensor([1]), torch.zeros(1, 0), 0.1, 0.9, 0.0, 1.0, 1.0
    )


def test_a_number_is_updated_as_a_vector_of_one(kernels: None) -> None:
    ours = []
    for shape in ((), (1,)):
        weight, velocity, grad = (torch.full(shape, value) for value in (0.8, 0.3, -0.5))
        momentum_update_([weight], [velocity], [grad], 0.3, 0.9, 0.05, 0.4, 1.0, 0.7)
        ours.append((float(weight), float(velocity)))
    assert ours[0] == ours[1] != (0.8, 0.3)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_copy_is_bf16(dtype: torch.dtype) -> None:
    weight, none, copy = torch.ones(2, 3), torch.empty(0), torch.zeros(2, 3, dtype=dtype)
    with pytest.raises(ValueError, match=f"each copy must be bf16, got {dtype}"):
        momentum_update_([weight], [none], [weight.clone()], 0.1, 0.0, 0.0, math.inf, 1.0, None, [copy])
    assert not copy.any()


def test_the_update_keeps_a_nan(kernels: None) -> None:
    weight, velocity, grad = torch.zeros(3), torch.zeros(3), torch.tensor([1.0, math.nan, -math.inf])
    momentum_update_([weight], [velocity], [grad], 0.5, 0.9, 0.0, 2.0, 1.0, None)
    assert weight[0] == -0.5
    assert weight[1].isnan()
    assert weight[2] == 1.0


def test_an_update_without_momentum_needs_none(kernels: None) -> None:
    torch.manual_seed(0)
    weight, grad = torch.randn(3, 40), torch.randn(3, 40)
    other, zeros = weight.clone(), torch.zeros(3, 40)
    momentum_update_([weight], [torch.empty(0)], [grad], 0.3, 0.0, 0.1, math.inf, 1.0, None)
    momentum_update_([other], [zeros], [grad], 0.3, 0.0, 0.1, math.inf, 1.0, None)
    assert torch.equal(weight, other)
    with pytest.raises(ValueError, match="each momentum must have the shape of its parameter"):
        momentum_update_([weight], [torch.empty(0)], [grad], 0.3, 0.9, 0.1, math.inf, 1.0, None)


@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("shape", [(7, 3), (90, 45), (3, 5000)])
def test_the_update_of_rows_is_momentum_sgd(
    kernels: None, shape: tuple[int, int], momentum: float, decay: float, clip: float | None
) -> None:
    torch.manual_seed(0)
    V, H = shape
    weight = torch.randn(shape)
    velocity = torch.zeros(shape if momentum else 0)
    reference = torch.nn.Parameter(weight.double())
    optimizer = MomentumSGD([reference], 0.3, momentum, decay, None, clip, "element")
    for count in (0, 1, V - 1, V // 2):
        rows = torch.randperm(V)[:count].sort().values
        grad = torch.randn(count, H)
        reference.grad = torch.zeros(shape, dtype=torch.float64).index_copy(0, rows, grad.double())
        optimizer.step()
        before, version = weight.clone(), weight._version
        momentum_update_rows_(weight, velocity, rows, grad, 0.3, momentum, decay, clip or math.inf, 1.0)
        assert weight._version > version
        if not (momentum or decay):
            others = torch.ones(V, dtype=torch.bool).index_fill(0, rows, value=False)
            assert torch.equal(weight[others], before[others])
    assert error(weight, reference.detach()) < 1e-6
    if momentum:
        assert error(velocity, optimizer.state[reference]["momentum"]) < 1e-6


@needs_compiler
@pytest.mark.parametrize(
    ("rows", "grad", "message"),
    [
        (torch.tensor([0]), torch.zeros(1, 4), r"1 rows and gradient \(1, 4\) do not fit"),
        (torch.tensor([0]), torch.zeros(2, 3), r"1 rows and gradient \(2, 3\) do not fit"),
        (torch.tensor([2, 0]), torch.zeros(2, 3), "rows must ascend"),
        (torch.tensor([1, 1]), torch.zeros(2, 3), "rows must ascend"),
        (torch.tensor([0, 5]), torch.zeros(2, 3), "rows must be from 0 to 4, got 0 to 5"),
        (torch.tensor([0]), torch.zeros(1, 3).double(), "float64 on cpu for gradient"),
    ],
)
def test_the_update_of_rows_refuses(rows: Tensor, grad: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        momentum_update_rows_(torch.zeros(5, 3), torch.zeros(5, 3), rows, grad, 0.1, 0.9, 0.0, math.inf, 1.0)


def test_noise_is_normal(kernels: None) -> None:
    noise = torch.zeros(3000, 331)
    version = noise._version
    add_noise_(noise, 2.0, seed=5)
    assert noise._version > version
    x = (noise.flatten().double() / 2).sort().values
    n = x.numel()
    steps = torch.arange(1, n + 1, dtype=torch.float64) / n
    # Kolmogorov and Smirnov's distance exceeds 1.95 / sqrt(n) by chance once in a thousand
    assert float((torch.special.ndtr(x) - steps).abs().max()) < 1.95 / math.sqrt(n)
    for moment, expected, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert float(x.pow(moment).mean()) == pytest.approx(expected, abs=3.3 * math.sqrt(spread / n))
    assert 4.5 < float(x.abs().max()) < 5.9
    square = noise / 2
    for one, other in (  # neighbours in a row and in a column, and the two of one angle and radius
        (square[:, 1:], square[:, :-1]),
        (square[1:], square[:-1]),
        (square[:, 0], square[:, 16]),
        (square[:, 0] ** 2 - 1, square[:, 16] ** 2 - 1),
    ):
        products = (one * other).double()
        assert abs(float(products.mean())) < 3.5 * float(products.std()) / math.sqrt(products.numel())


def test_noise_of_a_row_is_its_own(kernels: None) -> None:
    start, rows = torch.randn(700, 45), torch.tensor([3, 4, 699])
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(start.clone())
        add_noise_(found[-1], 0.1, seed=2**62 + 1)
    assert torch.equal(*found)
    some = start.clone()
    add_noise_(some, 0.1, 2**62 + 1, rows)
    assert torch.equal(some[rows], found[0][rows])
    others = torch.ones(700, dtype=torch.bool).index_fill(0, rows, value=False)
    assert torch.equal(some[others], start[others])
    add_noise_(some, 0.1, 1, torch.empty(0, dtype=torch.int64))
    assert torch.equal(some[others], start[others])
    another = start.clone()
    add_noise_(another, 0.1, seed=2)
    assert not (another == found[0]).any(1).all()
    vector = torch.zeros(5)
    add_noise_(vector, 1.0, 7)
    assert vector.unique().numel() == 5
    number, same = torch.zeros(()), torch.zeros(1)
    add_noise_(number, 1.0, 7)
    add_noise_(same, 1.0, 7)
    assert number == same != 0


@needs_compiler
@pytest.mark.parametrize(
    ("weight", "rows", "message"),
    [
        (torch.zeros(2, 3).double(), None, "float64 on cpu for weight"),
        (torch.zeros(2, 3).mT, None, "contiguous"),
        (torch.zeros(0, 3), None, r"not empty, .* got \(0, 3\)"),
        (torch.zeros(3), torch.tensor([0]), r"a matrix, got \(3,\)"),
        (torch.zeros(2, 3), torch.tensor([0, 2]), "rows must be from 0 to 1, got 0 to 2"),
        (torch.zeros(2, 3), torch.tensor([0.0]), "int64 on the CPU, got torch.float32"),
    ],
)
def test_noise_refuses(weight: Tensor, rows: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        add_noise_(weight, 0.1, 0, rows)


@needs_compiler
@pytest.mark.parametrize(
    ("params", "grads", "message"),
    [
        ([torch.zeros(2)], [torch.zeros(3)], "each gradient must have the shape of its parameter"),
        ([torch.zeros(2)], [], "each gradient must have the shape of its parameter"),
        ([torch.zeros(2, 3).mT], [torch.zeros(3, 2)], "contiguous"),
        ([torch.zeros(2).double()], [torch.zeros(2)], "float64 on cpu for parameter 0"),
    ],
)
def test_the_update_refuses(params: list[Tensor], grads: list[Tensor], message: str) -> None:
    momenta = [torch.zeros(param.shape) for param in params]
    with pytest.raises(ValueError, match=message):
        momentum_update_(params, momenta, grads, 0.1, 0.9, 0.0, math.inf, 1.0, None)
