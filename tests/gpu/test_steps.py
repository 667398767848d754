"""A chunk on a GPU is the chunk on the CPU: outputs, final state and gradients of every cell and every output layer."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from hornn.data.base import IGNORE
from hornn.heads.base import resolve_precision
from hornn.kernels import fused
from hornn.kernels.recorded import RECURS, SHELVES
from hornn.kernels.table import find_native_obstacle
from hornn.scan import scan
from kernels.tolerance import SCAN_ERROR, error
from reference.cases import MODEL_FOLDER, MODEL_NAMES, SMALL, build_cell, draw, draw_state, fill, seeded

pytestmark = pytest.mark.gpu
needs_triton = pytest.mark.skipif(fused.why_not() is not None, reason="needs Triton and a C compiler")

GPU, CPU = torch.device("cuda"), torch.device("cpu")
T, B, INPUT, H, V = 31, 3, 40, 48, 300
# Largest difference relative to the largest number. That of a cell is the one that the native kernels are allowed for
# as many steps and products as long; the output layer adds no steps, but sums over its words.
HEAD_ERROR = {"fp32": 1e-5, "bf16": 3e-2}
HEADS = sorted(path.stem for path in MODEL_FOLDER.with_name("head").glob("*.yaml"))


def build(name: str, units: int = H) -> Any:
    """The cell with random weights of a size that keeps its states from growing."""
    embeds = "embedded_input" in OmegaConf.load(MODEL_FOLDER / f"{name}.yaml")
    arguments = SMALL.get(name, {}) | ({"embedded_input": False} if embeds else {})
    scale = 0.1 * min(1, H / units)
    return fill(build_cell(name, INPUT, hidden_size=units, **arguments), seeded(0), scale).float()


def run_cell(
    cell: Any, x: Tensor, state: Any, device: torch.device, backend: str, bound: float | None = None
) -> dict[str, Tensor]:
    """Outputs, final state and all gradients, under random gradients of the outputs and of the state.

    A loop that is recorded is replayed here, after runs on other inputs.
    """
    cell = deepcopy(cell).to(device)
    for _ in range(RECURS + 2 if backend in ("graph", "native") else 0):
        y, last = scan(
            cell, x.to(device) + 1, type(state)(*(t.to(device) + 1 for t in state)), bound, backend
        )
        sum(tensor.sum() for tensor in (y, *last)).backward()
    cell.zero_grad()
    x, *tensors = (tensor.detach().clone().to(device).requires_grad_() for tensor in (x, *state))
    state = type(state)(*tensors)
    y, last = scan(cell, x, state, bound, backend)
    generator = seeded(3)
    found = {"y": y, **{f"last {key}": tensor for key, tensor in last._asdict().items()}}
    directions = [draw(generator, *tensor.shape).float().to(device) for tensor in found.values()]
    torch.autograd.backward(
        [tensor for tensor in found.values() if tensor.requires_grad],
        [one for one, tensor in zip(directions, found.values(), strict=True) if tensor.requires_grad],
    )
    leaves = {"x": x, **state._asdict(), **dict(cell.named_parameters())}
    return found | {f"gradient of {k}": leaf.grad for k, leaf in leaves.items() if leaf.grad is not None}


def compare(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for key, tensor in found.items():
        assert tensor.device.type == GPU.type, key
        assert error(tensor.detach().cpu(), expected[key].detach().double()) < tolerance, key


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_cell(name: str) -> None:
    cell, generator = build(name), seeded(1)
    x, state = draw(generator, T, B, INPUT).float(), draw_state(cell, B, generator)
    state = type(state)(*(tensor.float() for tensor in state))
    expected = run_cell(cell, x, state, CPU, "eager")
    obstacles = {"native": find_native_obstacle(cell, GPU, None)}
    obstacles["parallel"] = None if cell.is_parallel() else "no"
    for backend in ("eager", "graph", *(name for name, obstacle in obstacles.items() if obstacle is None)):
        compare(run_cell(cell, x, state, GPU, backend), expected, SCAN_ERROR)


@needs_triton
def test_which_cells_have_kernels_of_a_gpu() -> None:
    found = {name for name in MODEL_NAMES if find_native_obstacle(build(name), GPU, None) is None}
    expected = {"rnn", "srn", "hornn", "hornn_max", "hornn_fofe", "hornn_gated", "lstm", "gru", "scrn"}
    assert expected <= found


@needs_triton
@pytest.mark.parametrize(("columns", "units"), [(1, 48), (20, 400), (70, 50), (130, 200)])
@pytest.mark.parametrize(
    "name", ["rnn", "hornn", "hornn_max", "hornn_fofe", "hornn_gated", "lstm", "gru", "scrn"]
)
def test_kernels_of_other_sizes(name: str, columns: int, units: int) -> None:
    """More columns than a program takes, units that fill no whole tile, and the sizes of the papers."""
    if name == "hornn_max" and columns * units > 4000:
        pytest.skip("of so many taps two are as good as equal, and either may win")
    cell, generator = build(name, units), seeded(1)
    steps = T if units < 400 else 10
    x, state = draw(generator, steps, columns, INPUT).float(), draw_state(cell, columns, generator)
    state = type(state)(*(tensor.float() for tensor in state))
    found = run_cell(cell, x, state, GPU, "native")
    compare(found, run_cell(cell, x, state, CPU, "eager"), SCAN_ERROR)


@pytest.mark.parametrize("backend", ["eager", "graph", pytest.param("native", marks=needs_triton)])
@pytest.mark.parametrize("name", ["lstm", "rnn", "srn", "scrn"])
def test_a_bound_on_the_gradient_of_each_state(name: str, backend: str) -> None:
    cell, generator = build(name), seeded(1)
    x, state = draw(generator, T, B, INPUT).float(), cell.initial_state(B)
    found = run_cell(cell, x, state, GPU, backend, bound=0.5)
    compare(found, run_cell(cell, x, state, CPU, "eager", bound=0.5), SCAN_ERROR)


@pytest.mark.parametrize("recorded", ["graph", pytest.param("native", marks=needs_triton)])
def test_two_chunks_of_one_window_are_recorded_apart(recorded: str) -> None:
    """The gradients of both are taken after both were read: neither may overwrite the numbers of the other."""
    cell, generator = build("hornn_fofe"), seeded(1)
    chunks = draw(generator, 2, T, B, INPUT).float()
    found = []
    for device, backend in ((GPU, recorded), (CPU, "eager")):
        copy = deepcopy(cell).to(device)
        for _ in range(2 * RECURS):
            copy.zero_grad()
            state = copy.initial_state(B)
            for x in chunks:
                y, state = scan(copy, x.to(device), state, None, backend)
            y.square().sum().backward()
        found.append({name: p.grad for name, p in copy.named_parameters()})
    compare(*found, SCAN_ERROR)


def test_a_length_that_is_rare_is_not_recorded() -> None:
    cell = build("lstm").to(GPU)
    with torch.no_grad():
        for length in (*range(1, 6), *[7] * (RECURS + 1)):
            scan(cell, torch.zeros(length, B, INPUT, device=GPU), cell.initial_state(B), None, "graph")
    recorded = [kind for kind, held in SHELVES[cell].recordings.items() if held]
    assert [shapes[0][0][0] for shapes, *_ in recorded] == [7]


def run_head(head: Any, features: Tensor, targets: Tensor, device: torch.device, precision: str) -> Any:
    """Scores, loss and all gradients; `precision` is that of the loss."""
    head = deepcopy(head).to(device)
    head.precision = precision
    features, targets = features.detach().clone().to(device).requires_grad_(), targets.to(device)
    loss = head.loss(features, targets, 0.01)
    loss.backward()
    with torch.no_grad():
        found = {"nll": head.nll(features, targets), "log_probs": head.log_probs(features), "loss": loss}
    leaves = {"features": features, **dict(head.named_parameters())}
    return found | {f"gradient of {key}": leaf.grad for key, leaf in leaves.items()}


def zipf(length: int) -> Sequence[int]:
    return [10_000 // rank for rank in range(1, length + 1)]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", HEADS)
def test_an_output_layer(name: str, bias: bool, precision: str) -> None:
    """In bf16, the default of a GPU that has it, against the CPU in fp32."""
    if precision == "bf16" and resolve_precision("auto", GPU) != "bf16":
        pytest.skip("this GPU multiplies no bf16")
    make = instantiate(OmegaConf.load(MODEL_FOLDER.with_name("head") / f"{name}.yaml"))
    head = fill(make(input_size=H, counts=zipf(V), bias=bias), seeded(0), scale=0.2).float()
    if precision not in head.precisions:
        pytest.skip(f"{name} has no {precision}")
    generator = seeded(1)
    features = draw(generator, T, B, H).float()
    shape, outcomes = ((T, B, V), 2) if head.predicts == "keys" else ((T, B), V)
    targets = torch.randint(outcomes, shape, generator=generator)
    targets[-1, 1:] = IGNORE
    found, expected = (run_head(head, features, targets, *how) for how in ((GPU, precision), (CPU, "fp32")))
    compare(found, expected, HEAD_ERROR[precision])
