"""Time loops whose products are in bf16: the loop over `step` with the factors of all its products rounded to bf16."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hornn.cells.base import Cell
from hornn.cells.deep import DeepRnn
from hornn.cells.elman import Rnn
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn
from hornn.cells.lstm import Lstm
from hornn.kernels import library
from hornn.kernels.reduced import multiplies_in
from hornn.kernels.table import run_native
from hornn.network import SequenceModel
from hornn.scan import scan
from kernels.test_reduced import distance
from kernels.test_table import BOUNDABLE, OTHERS, run_cell

pytestmark = pytest.mark.parametrize("kernels", ["native"], indirect=True)  # lesser processors have no bf16
SIZES = [(1, 3, 50), (7, 1, 17), (6, 21, 33), (5, 7, 130), (3, 33, 40), (2, 4, 5)]
PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.bmm.default, torch.ops.aten.addmm.default)
# FOFE rounds alpha^n W_n, its step W_n; what lies between the loops of stacked levels and of contexts stays in fp32.
ROUNDED_ELSEWHERE = tuple(
    name for name in BOUNDABLE | OTHERS if name.startswith(("fofe", "hornn_fofe", "scrn", "srnn"))
)


@pytest.fixture
def bf16(kernels: None) -> None:
    if not library.operators().has_bf16():
        pytest.skip("needs a CPU with AVX-512 BF16, and a compiler that knows it")


class RoundedFactors(TorchDispatchMode):
    """Rounds both factors of every product to bf16, forward and backward."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in PRODUCTS:
            args = (*args[:-2], *(factor.bfloat16().to(factor.dtype) for factor in args[-2:]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("T", "B", "H"), SIZES)
@pytest.mark.parametrize(
    ("name", "bound"),
    [
        (name, bound)
        for name in BOUNDABLE | OTHERS
        if name not in ROUNDED_ELSEWHERE
        for bound in ((None, 0.5) if name in BOUNDABLE else (None,))
    ],
)
def test_a_cell_is_the_loop_with_rounded_factors(
    bf16: None, name: str, T: int, B: int, H: int, bound: float | None
) -> None:
    """A state that fp32 and float64 round to either side of it is off by 0.4 %: few of thousands are."""
    with RoundedFactors():
        expected = run_cell(name, torch.float64, T, B, H, bound)
    found = run_cell(name, torch.float32, T, B, H, bound, in_bf16=True)
    distances = {result: distance(found[result], expected[result]) for result in expected}
    assert max(distances.values()) < 1e-3, distances


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rnn(9, 30, bias=True),
        lambda: Lstm(9, 30, bias=True),
        lambda: GatedHornn(9, 30, order=2),
        lambda: DeepRnn(9, 30, output_depth=2, bias=True),
    ],
    ids=["rnn", "lstm", "hornn_gated", "deep output"],
)
def test_what_lies_around_the_loop_has_rounded_factors(bf16: None, make: Callable[[], Cell]) -> None:
    """The products of the inputs and of a deep output are rounded; a repeated input is multiplied once."""
    rows = torch.tensor([[0, 2, 1], [1, 1, 2]])

    def run(dtype: torch.dtype) -> dict[str, Tensor]:
        torch.manual_seed(0)
        cell, x = make(), torch.randn(1, 3, 9)
        for parameter in cell.parameters():
            parameter.data.normal_(std=0.3)
        cell, x = cell.to(dtype), x.to(dtype).requires_grad_()
        native = dtype == torch.float32
        y, _ = scan(cell, x, cell.initial_state(3), None, "native" if native else "eager", rows, native)
        (y * torch.randn(y.shape).to(dtype)).sum().backward()
        gradients = {of: parameter.grad for of, parameter in cell.named_parameters()}
        return {"y": y.detach(), "x": x.grad, **gradients}  # type: ignore[dict-item]

    with RoundedFactors():
        expected = run(torch.float64)
    found = run(torch.float32)
    distances = {result: distance(found[result], expected[result]) for result in expected}
    assert max(distances.values()) < 1e-3, distances


@pytest.mark.parametrize(("T", "B", "H"), SIZES)
@pytest.mark.parametrize("name", ROUNDED_ELSEWHERE)
def test_what_is_rounded_elsewhere_is_close(bf16: None, name: str, T: int, B: int, H: int) -> None:
    """The gradient of a factor is a sum of numbers of both signs, which loses more."""
    expected = run_cell(name, torch.float64, T, B, H)
    found = run_cell(name, torch.float32, T, B, H, in_bf16=True)
    distances = {result: distance(found[result], expected[result]) for result in expected if result != "beta"}
    assert max(distances.values()) < 1e-2, distances


def test_fofe_rounds_what_a_plain_hornn_rounds(bf16: None) -> None:
    torch.manual_seed(0)
    fofe, plain, u = FofeHornn(3, 17, order=3), Hornn(3, 17, order=3), torch.randn(5, 4, 17)
    plain.W_h.data = fofe.powers() * fofe.W_h.data
    found = [run_native(cell, u, cell.initial_state(4), in_bf16=True)[0] for cell in (fofe, plain)]
    assert torch.equal(*found)


def test_a_cpu_without_bf16_is_named(kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "operators", lambda: SimpleNamespace(has_bf16=lambda: False))
    cell = Rnn(3, 4)
    with pytest.raises(ValueError, match="needs a CPU with AVX-512 BF16: set network"):
        run_native(cell, torch.zeros(2, 1, 4), cell.initial_state(1), in_bf16=True)


@pytest.mark.parametrize("name", ["rnn", "hornn_gated", "hornn_max", "lstmp", "gru", "resrnn"])
def test_threads_do_not_matter(bf16: None, name: str) -> None:
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(run_cell(name, torch.float32, 6, 21, 130, in_bf16=True))
    for result in found[0]:
        assert torch.equal(found[0][result], found[1][result]), result


def test_training_multiplies_in_bf16_and_scores_do_not(bf16: None) -> None:
    if not multiplies_in(torch.bfloat16):
        pytest.skip("torch multiplies in bf16 on this CPU")
    torch.manual_seed(0)
    words = torch.randint(50, (7, 3))

    def features(precision: str, training: bool) -> torch.Tensor:
        network.precision = precision
        network.train(training).prepare(torch.device("cpu"))
        return network(words, network.initial_state(3))[0]

    network = SequenceModel([1] * 50, lambda **given: Rnn(hidden_size=20, **given), 20)
    exact, scores = features("fp32", True), features("bf16", False)
    assert network.loop_precision == "bf16"
    assert torch.equal(exact, scores)
    assert 1e-4 < distance(features("bf16", True), exact.double()) < 1e-2
    network.backend = "eager"
    assert torch.equal(features("bf16", True), features("fp32", True))
    assert network.loop_precision == "fp32"
