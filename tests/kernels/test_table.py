"""The cells that the kernels run: what the loop over `step` gives, and which cells these are."""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hornn.baselines.nnlm import Nnlm
from hornn.cells.base import Cell
from hornn.cells.deep import DeepRnn, StackedRnn
from hornn.cells.elman import Rnn
from hornn.cells.gru import Gru
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn, MaxHornn
from hornn.cells.hornn_acoustic import ReluHornn, ReluHornnp, ResRnn, SigmoidHornn, SigmoidHornnp
from hornn.cells.leaky import LeakyRnn
from hornn.cells.lstm import Lstm, Lstmp
from hornn.cells.scrn import Scrn, Srn
from hornn.kernels.scans import NativeLstm
from hornn.kernels.table import NATIVE
from hornn.optim.noise import DroppedWeights
from hornn.scan import choose_backend, scan
from kernels.tolerance import SCAN_ERROR, error, needs_compiler

BOUNDABLE: dict[str, Callable[[int], Cell]] = {
    "srn": lambda H: Srn(H, H),
    "scrn": lambda H: Scrn(H + 7, H, context_size=7),
    "scrn, adaptive": lambda H: Scrn(H + 7, H, context_size=7, adaptive=True),
    "scrn, context alone": lambda H: Scrn(H, 0, context_size=H, adaptive=True),
    "scrn, hidden units alone": lambda H: Scrn(H, H, context_size=0),
    "lstm": lambda H: Lstm(3, H, bias=True),
    "lstmp": lambda H: Lstmp(3, H, projection_size=max(1, H // 3), bias=True),
    "gru": lambda H: Gru(3, H),
    "gru, with a bias": lambda H: Gru(3, H, bias=True),
    "gru, reset before the product": lambda H: Gru(3, H, bias=True, reset_after=False),
    "rnn": lambda H: Rnn(3, H, activation="tanh", bias=True),
    "hornn of order 1": lambda H: Hornn(3, H, order=1, activation="tanh"),
    "fofe of order 1": lambda H: FofeHornn(3, H, 1, 0.95, learn_alpha=True, activation="tanh"),
    "deep, of one layer": lambda H: DeepRnn(3, H, transition_depth=1, state_activation="tanh", bias=True),
    "hornn_relu of one step": lambda H: ReluHornn(3, H, n=1, activation="tanh"),
    "hornn_sigmoid of one step": lambda H: SigmoidHornn(3, H, n=1, m=1),
    "resrnn": lambda H: ResRnn(3, H),
    "deep, with shortcuts": lambda H: DeepRnn(
        3, H, transition_size=H + 5, shortcuts=True, transition_activation="tanh", bias=True
    ),
}
OTHERS: dict[str, Callable[[int], Cell]] = {
    "hornn": lambda H: Hornn(3, H, order=3, activation="tanh", bias=True),
    "hornn_max": lambda H: MaxHornn(3, H, order=3),
    "hornn_fofe": lambda H: FofeHornn(3, H, order=3),
    "hornn_fofe, learned": lambda H: FofeHornn(3, H, order=3, learn_alpha=True),
    "srnn": lambda H: StackedRnn(3, H, depth=2, activation="tanh"),
    "srnn, all shortcuts": lambda H: StackedRnn(
        3, H, depth=3, input_shortcuts=True, output_shortcuts=True, bias=True
    ),
    "hornn_relu": lambda H: ReluHornn(3, H, activation="tanh"),
    "hornn_sigmoid": lambda H: SigmoidHornn(3, H),
    "hornn_sigmoid, far": lambda H: SigmoidHornn(3, H, n=3, m=4, activation="tanh"),
    "hornnp_relu": lambda H: ReluHornnp(3, H, activation="tanh"),
    "hornnp_sigmoid": lambda H: SigmoidHornnp(3, H, projection_size=H - 1),
    "hornnp_sigmoid, far": lambda H: SigmoidHornnp(3, H, n=1, m=3),
    "resrnn, far": lambda H: ResRnn(3, H, m=3),
    "hornn_gated": lambda H: GatedHornn(3, H, order=2, bias=True),
    "deep, fed first": lambda H: DeepRnn(3, H, transition_size=7, input_layers="first"),
    "deep, fed last": lambda H: DeepRnn(3, H, input_layers="last", shortcuts=True, bias=True),
    "deep, of three layers": lambda H: DeepRnn(3, H, 3, transition_size=2 * H + 1, shortcuts=True),
}


SIZES = [
    *((1, 1, 1), (1, 3, 50), (2, 3, 16), (31, 1, 50)),
    *((31, 3, 50), (5, 7, 17), (9, 26, 33), (6, 21, 130)),
]
AROUND = ("W_in", "b", "W_g1", "b_g")  # parameters of `project_input`, which does nothing here


def run_cell(
    name: str, dtype: torch.dtype, T: int, B: int, H: int, bound: float | None = None, in_bf16: bool = False
) -> dict[str, Tensor]:
    """All results of a cell's scan by name: by the kernels, in fp32 or bf16 products, or by the loop in float64."""
    torch.manual_seed(0)
    cell: Any = (BOUNDABLE | OTHERS)[name](H)
    for weight in cell.recurrent_weights():
        weight.data *= 5 / math.sqrt(H)
    for parameter in cell.parameters():
        if not parameter.any():  # a bias, which starts at 0
            parameter.data.normal_()
    G = cell.project_input(torch.zeros(1, 1, cell.input_size)).size(-1)

    def draw_like(tensors: Iterable[Tensor]) -> list[Tensor]:
        return [torch.randn(tensor.shape).to(dtype) for tensor in tensors]

    start = cell.initial_state(B)
    u, *before = (tensor.requires_grad_() for tensor in draw_like([torch.empty(T, B, G), *start]))
    cell = cell.to(dtype)
    cell.project_input = lambda u: u
    backend = "native" if dtype == torch.float32 else "eager"
    assert choose_backend(backend, cell, torch.device("cpu"), bound) == backend
    y, last = scan(cell, u, type(start)(*before), bound, backend, in_bf16=in_bf16)
    results = [y, *last]
    objective = sum((r * cotangent).sum() for r, cotangent in zip(results, draw_like(results), strict=True))
    around = AROUND if not isinstance(cell, StackedRnn) else ("W_in",)  # whose biases are its levels'
    weights = {weight: p for weight, p in cell.named_parameters() if weight not in around}
    gradients = torch.autograd.grad(objective, [u, *before, *weights.values()])
    fields = start._fields
    names = ("y", *(f"last {field}" for field in fields), "u", *fields, *weights)
    found = dict(zip(names, [r.detach() for r in (*results, *gradients)], strict=True))
    return {name: tensor for name, tensor in found.items() if tensor.numel()}


@pytest.mark.parametrize(
    ("T", "B", "H", "bound"),
    [
        *((T, B, H, bound) for T, B, H in SIZES for bound in (None, 0.5)),
        (5, 7, 17, 1e6),
    ],
)
@pytest.mark.parametrize("name", BOUNDABLE)
def test_a_cell_is_the_loop_with_and_without_a_bound(
    kernels: None, name: str, T: int, B: int, H: int, bound: float | None
) -> None:
    expected, found = run_cell(name, torch.float64, T, B, H, bound), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(run_cell(name, torch.float32, T, B, H, bound))
        errors = {result: error(found[-1][result], expected[result]) for result in expected}
        assert max(errors.values()) < SCAN_ERROR, errors
    # Torch computes a part of the other cells, and the gradient of the LSTM's W_h.
    if name in ("lstm", "gru", "rnn", "srn"):
        for result in set(expected) - {"W_h"}:
            assert torch.equal(found[0][result], found[1][result]), result


@pytest.mark.parametrize(("T", "B", "H"), [(1, 3, 50), (7, 3, 17)])
@pytest.mark.parametrize("name", OTHERS)
def test_a_cell_of_several_states_is_the_loop(kernels: None, name: str, T: int, B: int, H: int) -> None:
    expected, found = (run_cell(name, dtype, T, B, H) for dtype in (torch.float64, torch.float32))
    errors = {result: error(found[result], expected[result]) for result in expected}
    assert max(errors.values()) < SCAN_ERROR, errors


def test_dropped_weights_of_gates_are_dropped_in_the_kernel(kernels: None) -> None:
    """The kernel reads the weights as they are now, and back-propagates with those."""
    torch.manual_seed(0)
    cell, x = GatedHornn(3, 17, order=2), torch.randn(7, 3, 3)
    dropped = DroppedWeights(cell.recurrent_weights(), 0.4)
    found: dict[str, list[Tensor]] = {}
    for backend in ("eager", "native"):
        torch.manual_seed(1)
        cell.zero_grad()
        dropped.drop()
        y, _ = scan(cell, x, cell.initial_state(3), backend=backend)
        y.square().sum().backward()
        dropped.restore()
        found[backend] = [y.detach(), *(p.grad.clone() for p in cell.parameters() if p.grad is not None)]
    torch.testing.assert_close(found["native"], found["eager"])
    assert cell.W_g2.grad is not None
    assert float((cell.W_g2.grad == 0).double().mean()) == pytest.approx(0.4, abs=0.1)


def test_every_cell_of_the_table_is_tested() -> None:
    assert {type(build(4)) for build in (BOUNDABLE | OTHERS).values()} == set(NATIVE)


@pytest.mark.parametrize("name", BOUNDABLE)
def test_the_bound_bites(kernels: None, name: str) -> None:
    free, bounded = (run_cell(name, torch.float32, 5, 7, 17, bound) for bound in (None, 0.1))
    assert torch.equal(free["y"], bounded["y"])
    for field in {"h", "r", "c", "s", "history"} & set(free):
        assert bounded[field].norm() == pytest.approx(0.1)
        assert free[field].norm() > 0.2


def test_an_lstm_without_gradients_and_with_a_nan(kernels: None) -> None:
    everything = run_cell("lstm", torch.float32, T=5, B=3, H=20)
    torch.manual_seed(0)
    W_h = Lstm(3, 20, bias=True).W_h.detach() * (5 / math.sqrt(20))
    torch.randn(80)  # the bias, which `run_cell` draws and which is a part of u here
    u, h, c = (torch.randn(shape) for shape in ((5, 3, 80), (3, 20), (3, 20)))
    y, last_h, last_c = NativeLstm.apply(u, h, c, W_h)
    assert y.grad_fn is None
    for name, tensor in (("y", y), ("last h", last_h), ("last c", last_c)):
        assert torch.equal(tensor, everything[name])
    u[1, 0, 25] = math.nan
    y, _, last_c = NativeLstm.apply(u, h, c, W_h)
    assert y[1, 0].isnan().nonzero().flatten().tolist() == [5]
    assert y[2:, 0].isnan().all()
    assert not y[:, 1:].isnan().any()
    assert last_c[0].isnan().all()


@needs_compiler
@pytest.mark.parametrize(
    "model",
    [
        *("hornn_fofe", "lstm", "dts_rnn"),
        *(
            pytest.param(model, marks=pytest.mark.thorough)
            for model in ("rnn", "hornn_max", "hornn_gated", "lstmp", "leaky_rnn")
        ),
    ],
)
def test_training_with_and_without_the_kernels(
    command: Any, text: list[str], tmp_path: Path, model: str
) -> None:
    """Three epochs, to the rounding of fp32 that training magnifies."""
    found = {}
    for backend in ("eager", "auto"):
        done = command(
            "train",
            *text,
            f"model={model}",
            f"network.backend={backend}",
            "network.precision=fp32",
            "model.hidden_size=8",
            "optimizer.lr=0.5",
            "optimizer.clip=0.1",
            "optimizer.max_norm=2",
            "trainer.max_epochs=3",
            "logger=csv",
            f"run_dir={tmp_path / backend}",
        )
        assert done.code == 0, done.err
        result = json.loads((tmp_path / backend / "result.json").read_text())
        found[result["backend"], result["native_kernels"]] = result["test_ppl"]
    assert set(found) == {("eager", False), ("eager" if model == "leaky_rnn" else "native", True)}
    for ppl in found.values():
        assert ppl == pytest.approx(found["eager", False], rel=1e-4)


@needs_compiler
def test_which_cells_run_natively() -> None:
    """By their exact class: a subclass may have another step."""

    class Doubled(Hornn):
        def pool(self, history: Tensor) -> Tensor:
            return 2 * super().pool(history)

    class Renamed(Hornn):
        pass

    def choose(cell: Cell, bound: float | None = None) -> str:
        return choose_backend("auto", cell, torch.device("cpu"), bound)

    assert choose(Hornn(4, 5)) == "native"
    assert choose(Doubled(4, 5)) == choose(Renamed(4, 5)) == "eager"
    assert choose(Hornn(4, 5), 1.0) == choose(MaxHornn(4, 5, order=1), 1.0) == "eager"
    assert choose(Hornn(4, 5).double()) == "eager"
    assert choose(Scrn(9, 5, context_size=4)) == "native"
    assert choose(Scrn(9, 5, context_size=4, context_input="previous")) == "eager"
    assert choose(Gru(4, 5)) == choose(Gru(4, 5, reset_after=False)) == "native"
    assert choose(DeepRnn(4, 5)) == choose(DeepRnn(4, 5, output_depth=2, output_dropout=0.5)) == "native"
    assert choose(DeepRnn(4, 5, transition_activation="lp", transition_dropout=0.5)) == "native"


@pytest.mark.parametrize(
    ("cell", "device", "bound", "message"),
    [
        (
            LeakyRnn(4, 5),
            "cpu",
            None,
            "cannot run LeakyRnn on this cpu: there are native kernels for Rnn, .*; use auto, eager$",
        ),
        (
            Rnn(4, 5),
            "meta",
            None,
            "cannot run Rnn on this meta: the native kernels are for CPUs and for NVIDIA's GPUs; use auto, eager$",
        ),
        (
            Rnn(4, 5).bfloat16(),
            "cpu",
            None,
            "compute in fp32, its weights are torch.bfloat16; use auto, eager$",
        ),
        (Hornn(4, 5), "cpu", 1.0, "bounds the gradient of a state that holds several steps"),
        (GatedHornn(4, 5), "cpu", 1.0, "has no native kernel with this recurrence"),
        (Scrn(4, 2, 2, context_input="previous"), "cpu", None, "no native kernel for context_input=previous"),
        (Nnlm(4, 5), "cpu", None, "there are native kernels for .*; use auto, eager, parallel$"),
    ],
)
def test_a_cell_that_cannot(cell: Cell, device: str, bound: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_backend("native", cell, torch.device(device), bound)
