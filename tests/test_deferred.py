"""The deferred scan gives what the loop over `step` gives: outputs, last state and every gradient."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.base import Cell
from hornn.cells.elman import Rnn
from hornn.cells.hornn import FofeHornn, Hornn
from hornn.cells.recurrence import Recurrence, find_partials
from hornn.kernels.deferred import deferred_scan
from hornn.network import LanguageModel
from hornn.scan import choose_backend, scan
from reference.cases import MODEL_FOLDER, MODEL_NAMES, build_cell, draw, draw_state, fill, seeded

T, B, INPUT, H = 7, 3, 5, 6
CPU = torch.device("cpu")
AS_WRITTEN = {
    "clockwork",
    "gf_rnn",
    "hierarchical",
    "highway",
    "nnlm",
    "fofe_fnn",
    "memn2n",
}  # steps not declared

# Arguments under which a cell has all of its operands.
VARIANTS: dict[str, dict[str, Any]] = {
    "rnn": {"bias": True, "activation": "relu"},
    "lstm": {"bias": True},
    "gru": {"bias": True},
    "hornn": {"bias": True, "order": 1, "activation": "tanh"},
    "hornn_max": {"bias": True, "order": 8, "activation": "tanh"},
    "hornn_fofe": {"bias": True, "order": 8, "alpha": 0.9},
    "hornn_gated": {"bias": True, "order": 1},
    "lstmp": {"projection_size": 4, "bias": False},
    "scrn": {"adaptive": True, "context_input": "previous", "context_size": 4},
    "hornn_relu": {"n": 1},
    "hornn_sigmoid": {"n": 3, "m": 5},
    "hornnp_relu": {"n": 2, "projection_size": 4},
    "hornnp_sigmoid": {"n": 2, "m": 4, "projection_size": 4},
    "resrnn": {"m": 3},
    "dt_rnn": {"bias": True, "transition_depth": 3, "transition_size": 4, "input_layers": "last"},
    "dts_rnn": {"bias": True, "transition_depth": 4, "transition_size": 4, "transition_activation": "tanh"},
    "srnn": {"bias": True, "depth": 3, "input_shortcuts": True, "output_shortcuts": True},
    "leaky_rnn": {"bias": True, "leak_rate": 0.3},
}
CASES = [(name, {}) for name in MODEL_NAMES if name not in AS_WRITTEN] + list(VARIANTS.items())


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Memory that is read before it is written holds NaN."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)


def make(name: str, **arguments: Any) -> Any:
    if "embedded_input" in OmegaConf.load(MODEL_FOLDER / f"{name}.yaml"):
        arguments["embedded_input"] = False
    return fill(build_cell(name, INPUT, hidden_size=H, **arguments), seeded(0))


def results(cell: Cell, steps: int, backend: str, bound: float | None = None) -> list[Tensor]:
    """Outputs, last state and the gradients of the input, the state and the parameters."""
    generator = seeded(1)
    x = draw(generator, steps, B, INPUT).requires_grad_()
    state = draw_state(cell, B, generator)
    state = type(state)(*(tensor.requires_grad_() for tensor in state))
    y, last = scan(cell, x, state, bound, backend)
    loss = sum((tensor * draw(generator, *tensor.shape)).sum() for tensor in (y, *last))
    assert isinstance(loss, Tensor)
    return [y, *last, *torch.autograd.grad(loss, [x, *state, *cell.parameters()])]


@pytest.mark.parametrize("steps", [1, 2, T])
@pytest.mark.parametrize(("name", "arguments"), CASES, ids=lambda value: str(value))
def test_it_is_the_loop_as_written(name: str, arguments: dict[str, Any], steps: int) -> None:
    cell = make(name, **arguments)
    assert_close(results(cell, steps, "deferred"), results(cell, steps, "eager"), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("arguments", [{}, VARIANTS["scrn"]], ids=["current", "previous"])
@pytest.mark.parametrize("bound", [1e-3, 0.5, 1e6])
def test_the_bound_on_the_gradient_of_a_state(arguments: dict[str, Any], bound: float) -> None:
    cell = make("scrn", **arguments)
    eager = results(cell, T, "eager", bound)
    assert_close(results(cell, T, "deferred", bound), eager, rtol=1e-10, atol=1e-12)
    free = results(cell, T, "eager")
    assert (bound < 1e6) != all(torch.equal(a, b) for a, b in zip(eager, free, strict=True))


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(("hidden", "context"), [(0, 4), (5, 0)])
def test_an_scrn_of_one_kind_of_units(hidden: int, context: int, adaptive: bool) -> None:
    sizes = {"hidden_size": hidden, "context_size": context, "embedded_input": False}
    cell = fill(build_cell("scrn", INPUT, **sizes, adaptive=adaptive), seeded(0))
    for bound in (None, 0.5):
        eager, deferred = (results(cell, T, backend, bound) for backend in ("eager", "deferred"))
        assert_close(deferred, eager, rtol=1e-10, atol=1e-12)


def test_an_output_that_nobody_differentiates() -> None:
    cell = make("lstm")
    x = draw(seeded(1), T, B, INPUT)
    for pick in (lambda y, last: y[2].sum(), lambda y, last: last.c.sum()):
        grads = [
            torch.autograd.grad(pick(*scan(cell, x, cell.initial_state(B), None, backend)), cell.W_h)[0]
            for backend in ("eager", "deferred")
        ]
        assert_close(*grads, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["lstm", "gru", "hornn_max", "hornn_gated"])
def test_written_derivatives_are_those_that_torch_finds(name: str) -> None:
    cell = make(name, **VARIANTS[name])
    declared: Recurrence = cell.recurrence()
    plain = declared._replace(
        registers=tuple(
            register._replace(function=lambda *operands, f=register.function: f(*operands))
            for register in declared.registers
        )
    )
    x, state = draw(seeded(1), T, B, INPUT), draw_state(cell, B, seeded(2))
    found = []
    for recurrence in (declared, plain):
        u = cell.project_input(x).detach().requires_grad_()
        y, last = deferred_scan(recurrence, u, state)
        found.append(torch.autograd.grad(y.square().sum() + last[0].sum(), [u, cell.W_h], retain_graph=True))
    assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_derivatives_of_a_function_without_written_ones() -> None:
    a, b = draw(seeded(0), 2, 3), draw(seeded(1), 3)
    of_a, of_b = find_partials(lambda a, b: a * a * b, a * a * b, [a, b])
    assert_close(of_a, 2 * a * b)
    assert_close(of_b, a * a)


def test_another_step_does_not_inherit_the_declaration() -> None:
    class Doubled(Hornn):
        def pool(self, history: Tensor) -> Tensor:
            return 2 * super().pool(history)

    class Renamed(Hornn):
        def initial_state(self, batch_size: int) -> Any:
            return super().initial_state(batch_size)

    assert Doubled(INPUT, H).recurrence() is None
    assert Renamed(INPUT, H).recurrence() is not None
    assert choose_backend("auto", Doubled(INPUT, H), CPU) == "eager"


def test_the_choice_of_a_backend() -> None:
    assert choose_backend("eager", Rnn(INPUT, H), CPU) == "eager"
    assert choose_backend("deferred", Rnn(INPUT, H), CPU) == "deferred"
    assert choose_backend("auto", make("gru"), CPU) == "deferred"
    assert choose_backend("auto", make("highway"), CPU) == "eager"
    assert choose_backend("auto", make("scrn", context_input="previous"), CPU, 1.0) == "deferred"
    assert choose_backend("auto", FofeHornn(INPUT, H), CPU, 1.0) == "eager"
    dropping = make("dt_rnn", transition_dropout=0.5)
    assert choose_backend("auto", dropping, CPU) == "eager"
    assert choose_backend("auto", dropping.eval(), CPU) == "deferred"


@pytest.mark.parametrize(
    ("name", "backend", "bound", "message"),
    [
        ("highway", "deferred", None, "does not declare its step .*; use auto, eager"),
        (
            "hornn",
            "deferred",
            1.0,
            "network.state_grad_norm bounds the gradient of a state that holds several",
        ),
        ("gru", "native", None, "there are native kernels for rnn, .*; use auto, eager, deferred"),
        (
            "rnn",
            "fused",
            None,
            "network.backend must be one of auto, eager, deferred, native, parallel, got 'fused'",
        ),
    ],
)
def test_a_backend_that_cannot(name: str, backend: str, bound: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_backend(backend, make(name), CPU, bound)


def test_a_network_says_what_it_runs() -> None:
    network = LanguageModel([3, 2, 1], lambda input_size: Rnn(input_size, H), H, backend="deferred")
    assert network.scan_backend == "eager"
    network.prepare(CPU)
    assert network.scan_backend == "deferred"
