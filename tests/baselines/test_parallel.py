"""A chunk computed at once gives what the loop over `step` gives: outputs, last state and every gradient."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn import scan as scan_module
from hornn.baselines.fofe_fnn import FofeFnn
from hornn.baselines.memn2n import MemN2N
from hornn.baselines.nnlm import Nnlm
from hornn.cells.base import Cell
from hornn.cells.elman import Rnn
from hornn.network import SequenceModel
from hornn.scan import choose_backend, scan
from reference.cases import draw, draw_state, fill, seeded

B, INPUT, H = 3, 4, 6
CPU = torch.device("cpu")
CASES: list[tuple[Any, dict[str, Any]]] = [
    (Nnlm, {}),
    (Nnlm, {"order": 2, "bias": False}),
    (Nnlm, {"order": 9, "direct": True, "activation": "sigmoid"}),
    (FofeFnn, {}),
    (FofeFnn, {"order": 1, "alpha": 0.95, "num_hidden": 1, "bias": False}),
    (FofeFnn, {"order": 4, "learn_alpha": True, "num_hidden": 3, "activation": "tanh"}),
    (MemN2N, {"hops": 3, "memory_size": 5, "embedded_input": False}),
    (MemN2N, {"hops": 1, "memory_size": 1, "linear_size": 0, "embedded_input": False}),
    (MemN2N, {"hops": 2, "memory_size": 20, "linear_size": H, "embedded_input": False}),
]
every_case = pytest.mark.parametrize(
    ("kind", "arguments"), CASES, ids=lambda value: getattr(value, "__name__", None) or str(value)
)


def results(
    cell: Cell, steps: int, backend: str, fresh: bool, last: int | None = None, cut: int = 0
) -> list[Tensor]:
    """Outputs, last state and the gradients of the input, the state (where there is one) and the parameters.

    last: the steps whose outputs `scan` is asked for; cut: the first steps whose outputs are thrown away afterwards.
    """
    generator = seeded(1)
    x = draw(generator, steps, B, INPUT).requires_grad_()
    state = cell.initial_state(B) if fresh else draw_state(cell, B, generator)
    state = type(state)(*(tensor.requires_grad_() for tensor in state))
    y, after = scan(cell, x, state, None, backend, last=last)
    y = y[cut:]
    loss = sum((tensor * draw(generator, *tensor.shape)).sum() for tensor in (y, *after))
    assert isinstance(loss, Tensor)
    leaves = [x, *state, *cell.parameters()]
    gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
    return [y, *after, *gradients]


@every_case
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_it_is_the_loop_as_written(kind: Any, arguments: dict[str, Any], steps: int, fresh: bool) -> None:
    cell = fill(kind(INPUT, H, **arguments), seeded(0))
    found, expected = (results(cell, steps, backend, fresh) for backend in ("parallel", "eager"))
    assert_close(found, expected, rtol=1e-10, atol=1e-12)


@every_case
def test_a_long_chunk_is_computed_in_blocks(
    kind: Any, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = fill(kind(INPUT, H, **arguments), seeded(0))
    whole = results(cell, 7, "parallel", fresh=True)
    last = results(cell, 7, "parallel", fresh=True, last=2)
    monkeypatch.setattr(scan_module, "PARALLEL_STEPS", 3)
    assert_close(results(cell, 7, "parallel", fresh=True), whole, rtol=1e-10, atol=1e-12)
    assert_close(results(cell, 7, "parallel", fresh=True, last=2), last, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("backend", ["parallel", "eager"])
@every_case
def test_outputs_of_the_last_steps_alone(kind: Any, arguments: dict[str, Any], backend: str) -> None:
    cell = fill(kind(INPUT, H, **arguments), seeded(0))
    found = results(cell, 7, backend, fresh=False, last=2)
    assert_close(found, results(cell, 7, backend, fresh=False, cut=5), rtol=1e-10, atol=1e-12)


def test_the_choice_of_a_backend() -> None:
    assert choose_backend("auto", Nnlm(INPUT, H), CPU) == "parallel"
    assert choose_backend("parallel", FofeFnn(INPUT, H), CPU) == "parallel"
    assert choose_backend("eager", FofeFnn(INPUT, H), CPU) == "eager"
    assert choose_backend("auto", FofeFnn(INPUT, H), CPU, 1.0) == "eager"


@pytest.mark.parametrize(
    ("cell", "bound", "message"),
    [
        (
            Rnn(INPUT, H),
            None,
            "cannot run Rnn on this cpu: a step of this cell waits .*; use auto, eager",
        ),
        (Nnlm(INPUT, H), 1.0, "network.state_grad_norm bounds .* of every single step; use auto, eager$"),
    ],
)
def test_a_cell_that_cannot(cell: Cell, bound: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_backend("parallel", cell, CPU, bound)


def test_another_step_does_not_inherit_the_way_around_the_loop() -> None:
    class Doubled(Nnlm):
        def step(self, u_t: Tensor, state: Any) -> tuple[Tensor, Any]:
            y_t, state = super().step(u_t, state)
            return 2 * y_t, state

    class Renamed(Nnlm):
        def initial_state(self, batch_size: int) -> Any:
            return super().initial_state(batch_size)

    class Child(Doubled):
        pass

    class Whole(Doubled):
        def all_steps(self, u: Tensor, state: Any) -> tuple[Tensor, Any]:
            y, state = super().all_steps(u, state)
            return 2 * y, state

    for other in (Doubled, Child):
        assert choose_backend("auto", other(INPUT, H), CPU) == "eager"
        with pytest.raises(ValueError, match="a step of this cell waits"):
            choose_backend("parallel", other(INPUT, H), CPU)
    for same in (Renamed, Whole):
        assert choose_backend("auto", same(INPUT, H), CPU) == "parallel"


def test_all_steps_of_its_own_do_not_inherit_what_the_state_is_after_them() -> None:
    class Halved(MemN2N):
        def all_steps(self, u: Tensor, state: Any) -> tuple[Tensor, Any]:
            y, after = super().all_steps(u, state)
            return y, after._replace(memory=after.memory / 2)

    cell = fill(Halved(INPUT, H, hops=1, memory_size=3, embedded_input=False), seeded(0))
    u, state = draw(seeded(1), 4, B, 2 * H), draw_state(cell, B, seeded(2))
    assert_close(cell.state_after(u, state).memory, cell.all_steps(u, state)[1].memory)


def test_a_network_says_what_it_runs() -> None:
    network = SequenceModel([3, 2, 1], lambda input_size: FofeFnn(input_size, H), H)
    assert network.scan_backend == "eager"
    network.prepare(CPU)
    assert network.scan_backend == "parallel"
