"""What every cell promises (hornn.cells.base), checked for every file in conf/model.

A new yaml is covered without touching this file. The state may be any NamedTuple of floating-point tensors of shape
(..., B, width), and the outputs may have any width. HORNN_CONFIG_DIR=FOLDER checks the cells of FOLDER/model/*.yaml
in their place, as --config-dir=FOLDER trains them.
"""

from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.testing import assert_close

from hornn.cells.base import find_activation
from hornn.scan import detach, scan
from reference.cases import CELL_FOLDER, CELLS, SHIPPED, SMALL, build_cell, draw, draw_state, fill, seeded

T, B, INPUT, H = 7, 3, 4, 8

every_model = pytest.mark.parametrize("name", CELLS)


def small_cell(name: str) -> Any:
    """The cell at these sizes, as an evaluation runs it. `embedded_input` fixes the input's width: here it is off."""
    embeds = "embedded_input" in OmegaConf.load(CELL_FOLDER / f"{name}.yaml")
    arguments = SMALL.get(name, {}) | ({"embedded_input": False} if embeds else {})
    return build_cell(name, INPUT, CELL_FOLDER, hidden_size=H, **arguments).eval()


def random_cell(name: str) -> Any:
    return fill(small_cell(name), seeded(0))


def random_case(name: str) -> tuple[Any, Tensor, Any]:
    """A cell with random weights, an input (T, B, I) and a state, all in float64; its counters as after T steps."""
    cell, generator = random_cell(name), seeded(1)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    counted = scan(cell, x, cell.initial_state(B))[1]
    return cell, x, state._replace(**{key: getattr(counted, key).detach() for key in cell.counters})


def clone(state: Any) -> Any:
    return type(state)(*(tensor.clone() for tensor in state))


class Scan(nn.Module):
    """The scan as a module, so that its parameters can be handed in as arguments."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        return scan(self.cell, x, state)


def test_the_cells_of_the_paper_are_configured() -> None:
    assert {"rnn", "lstm", "gru", "hornn", "hornn_max", "hornn_fofe", "hornn_gated"} <= SHIPPED


@every_model
def test_shapes(name: str) -> None:
    cell, x, _ = random_case(name)
    assert (cell.input_size, cell.hidden_size) == (INPUT, H)
    state = cell.initial_state(B)
    u = cell.project_input(x)
    assert (u.ndim, u.shape[:2]) == (3, (T, B))
    y_t, next_state = cell.step(u[0], state)
    assert cell.project_output(y_t[None]).shape == (1, B, cell.output_size)
    y, last = scan(cell, x, state)
    assert y.shape == (T, B, cell.output_size)
    for other in (next_state, last):
        assert type(other) is type(state)
        assert [tensor.shape for tensor in other] == [tensor.shape for tensor in state]
    assert {tensor.dtype for tensor in (u, y_t, y, *next_state, *last)} == {torch.float64}


@every_model
def test_a_repeated_input_need_not_be_projected_again(name: str) -> None:
    """What belongs to a step is a function of its own input: outputs and gradients stay if each word is read once."""
    cell, _, state = random_case(name)
    table = draw(seeded(2), 5, INPUT).requires_grad_()
    words = torch.randint(5, (T, B), generator=seeded(3))
    found = []
    for x, rows in ((table[words], None), (table[None], words)):
        y, last = scan(cell, x, state, rows=rows)
        wanted = [table, *(p for p in cell.parameters() if p.requires_grad)]
        total = y.pow(2).sum() + sum(tensor.sum() for tensor in last)
        found.append((y, *last, *torch.autograd.grad(total, wanted, allow_unused=True)))
    assert_close(found[0], found[1], rtol=1e-9, atol=1e-12)


@every_model
def test_initial_state_is_a_named_tuple_of_constants_zeros_in_our_cells(name: str) -> None:
    for batch_size in (1, 5):
        state = random_cell(name).initial_state(batch_size)
        assert isinstance(state, tuple)
        assert hasattr(state, "_fields")
        for tensor in state:
            assert tensor.shape[-2] == batch_size
            assert torch.equal(tensor, tensor[..., :1, :].expand_as(tensor))  # all columns start alike
            assert name not in SHIPPED or not tensor.any()
            assert not tensor.requires_grad


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_initial_state_follows_the_dtype_of_the_parameters(name: str, dtype: torch.dtype) -> None:
    cell = small_cell(name).to(dtype)
    assert {tensor.dtype for tensor in cell.initial_state(B)} == {dtype}
    y, last = scan(cell, torch.zeros(T, B, INPUT, dtype=dtype), cell.initial_state(B))
    assert {tensor.dtype for tensor in (y, *last)} == {dtype}


@every_model
def test_initial_state_follows_the_device_of_the_parameters(name: str) -> None:
    cell = small_cell(name)
    for kind in ("cpu", "meta"):
        assert {tensor.device.type for tensor in cell.to(kind).initial_state(B)} == {kind}


@every_model
def test_every_call_makes_a_new_initial_state(name: str) -> None:
    cell = random_cell(name)
    first = clone(cell.initial_state(B))
    for tensor in cell.initial_state(B):
        tensor.add_(1.0)
    assert all(map(torch.equal, cell.initial_state(B), first))


@every_model
def test_scan_is_the_loop_over_step(name: str) -> None:
    cell, x, state = random_case(name)
    y, last = scan(cell, x, state)
    u = cell.project_input(x)
    for t in range(T):
        y_t, state = cell.step(u[t], state)
        assert_close(y[t], cell.project_output(y_t[None])[0], rtol=1e-12, atol=1e-12)
    assert_close(tuple(last), tuple(state), rtol=1e-12, atol=1e-12)


@every_model
def test_the_projection_of_the_input_treats_every_step_alike(name: str) -> None:
    cell, x, _ = random_case(name)
    u = cell.project_input(x)
    for t in range(T):
        assert_close(u[t], cell.project_input(x[t : t + 1])[0], rtol=1e-12, atol=1e-12)


@every_model
def test_a_history_is_what_it_was_with_the_newest_instead_of_the_oldest(name: str) -> None:
    """What `histories` says is so, and every other tensor of the state is of one step."""
    cell, x, state = random_case(name)
    _, after = cell.step(cell.project_input(x)[0], state)
    newest = cell.newest(after)
    for key, tensor in after._asdict().items():
        before = getattr(state, key)
        if key in cell.histories and len(tensor):
            first = cell.histories[key] == 0
            assert_close(newest[key], tensor[0 if first else -1], rtol=0, atol=0)
            kept, moved = (tensor[1:], before[:-1]) if first else (tensor[:-1], before[1:])
            assert_close(kept, moved, rtol=0, atol=0)
        elif tensor.ndim > 2 and len(tensor) > 1 and key not in cell.counters:
            assert not torch.equal(tensor[1:], before[:-1]), (
                f"{key} holds several steps: name it in `histories`"
            )
            assert not torch.equal(tensor[:-1], before[1:]), (
                f"{key} holds several steps: name it in `histories`"
            )


@every_model
def test_paths_add_up_to_the_step(name: str) -> None:
    """f(input + pooled) is the hidden part of y_t, and every path is a tensor of the batch."""
    cell, x, state = random_case(name)
    u = cell.project_input(x)
    paths = cell.paths(u[0], state)
    assert all(len(path) == B and path.isfinite().all() for path in paths.values())
    if {"input", "pooled"} <= paths.keys():
        y_t, _ = cell.step(u[0], state)
        hidden = find_activation(cell.activation)(paths["input"] + paths["pooled"])
        assert_close(hidden, y_t[:, : hidden.size(-1)], rtol=1e-12, atol=1e-12)


@every_model
def test_a_chunk_of_one_step(name: str) -> None:
    cell, x, state = random_case(name)
    y, last = scan(cell, x[:1], state)
    y_t, next_state = cell.step(cell.project_input(x[:1])[0], state)
    assert y.shape == (1, B, cell.output_size)
    assert_close(y[0], cell.project_output(y_t[None])[0], rtol=1e-12, atol=1e-12)
    assert_close(tuple(last), tuple(next_state), rtol=1e-12, atol=1e-12)


@every_model
@pytest.mark.parametrize("lengths", [(3, 4), (1, 6), (6, 1), (2, 2, 3), (1,) * T], ids=str)
def test_chunks_with_carried_state_are_one_pass(name: str, lengths: tuple[int, ...]) -> None:
    cell, x, state = random_case(name)
    y, last = scan(cell, x, state)
    chunks = []
    for chunk in x.split(lengths):
        y_chunk, state = scan(cell, chunk, detach(state))
        chunks.append(y_chunk)
    assert_close(torch.cat(chunks), y, rtol=1e-12, atol=1e-12)
    assert_close(tuple(state), tuple(last), rtol=1e-12, atol=1e-12)


@every_model
def test_no_gradient_passes_a_detached_state(name: str) -> None:
    cell, x, state = random_case(name)
    x.requires_grad_()
    _, carried = scan(cell, x[:3], state)
    assert any(tensor.requires_grad for tensor in carried)
    kept = detach(carried)
    assert type(kept) is type(state)
    assert not any(tensor.requires_grad for tensor in kept)
    assert_close(tuple(kept), tuple(tensor.detach() for tensor in carried), rtol=0, atol=0)
    y, _ = scan(cell, x[3:], kept)
    y.sum().backward()
    assert x.grad is not None
    assert not x.grad[:3].any()
    assert x.grad[3:].any()


@every_model
def test_batch_columns_are_independent(name: str) -> None:
    cell, x, state = random_case(name)
    y, last = scan(cell, x, state)
    other_x, other_state = x.clone(), clone(state)
    other_x[:, 0] += 1.0
    for tensor in other_state:
        tensor[..., 0, :] += 1.0
    other_y, other_last = scan(cell, other_x, other_state)
    assert (other_y[:, 0] != y[:, 0]).any()
    assert_close(other_y[:, 1:], y[:, 1:], rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(other_last, last, strict=True):
        assert_close(ours[..., 1:, :], theirs[..., 1:, :], rtol=1e-12, atol=1e-12)


@every_model
def test_a_column_alone_is_the_column_in_a_batch(name: str) -> None:
    cell, x, state = random_case(name)
    y, _ = scan(cell, x, state)
    for column in range(B):
        alone = type(state)(*(tensor[..., column : column + 1, :] for tensor in state))
        y_alone, _ = scan(cell, x[:, column : column + 1], alone)
        assert_close(y_alone, y[:, column : column + 1], rtol=1e-12, atol=1e-12)


@every_model
def test_outputs_do_not_depend_on_the_future(name: str) -> None:
    cell, x, state = random_case(name)
    y, _ = scan(cell, x, state)
    changed = x.clone()
    changed[4:] += 1.0
    y_changed, _ = scan(cell, changed, state)
    assert_close(y_changed[:4], y[:4], rtol=1e-12, atol=1e-12)
    assert (y_changed[4:] != y[4:]).any()


@every_model
def test_every_parameter_gets_a_gradient(name: str) -> None:
    cell, x, state = random_case(name)
    x.requires_grad_()
    state = type(state)(*(tensor.requires_grad_() for tensor in state))
    starts = (
        [state, cell.initial_state(B)] if cell.counters else [state]
    )  # what counts may tell the first step
    y = torch.stack([scan(cell, x, each)[0] for each in starts])
    (y * draw(seeded(2), *y.shape)).sum().backward()
    units = {key: tensor for key, tensor in state._asdict().items() if key not in cell.counters}
    leaves = {"x": x, **units} | {key: p for key, p in cell.named_parameters() if p.requires_grad}
    for key, leaf in leaves.items():
        assert leaf.grad is not None, f"{key} has no gradient: if it only counts, name it in `counters`"
        assert leaf.grad.isfinite().all(), key
        assert leaf.grad.abs().max() > 0, key


@pytest.mark.parametrize("fast", [True, pytest.param(False, marks=pytest.mark.thorough)])
@every_model
def test_gradients_are_the_derivatives(name: str, fast: bool) -> None:
    """Of outputs and final state, with respect to input, initial state and every parameter, but for what counts."""
    cell, x, state = random_case(name)
    counted = {key: getattr(state, key)[..., :2, :] for key in cell.counters}
    units = {key: tensor for key, tensor in state._asdict().items() if key not in counted}
    module, state_class, width = Scan(cell), type(state), len(units)
    keys = [key for key, _ in module.named_parameters()]

    def outputs(x: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        drawn = dict(zip(units, tensors[:width], strict=True))
        state, parameters = state_class(**counted, **drawn), dict(zip(keys, tensors[width:], strict=True))
        y, last = torch.func.functional_call(module, parameters, (x, state))
        return y, *(getattr(last, key) for key in units)

    arguments = [x[:4, :2], *(tensor[..., :2, :] for tensor in units.values()), *module.parameters()]
    arguments = [tensor.detach().clone().requires_grad_() for tensor in arguments]
    assert all(tensor.requires_grad for tensor in outputs(*arguments)), "gradcheck skips the others"
    assert torch.autograd.gradcheck(outputs, arguments, fast_mode=fast)


@every_model
def test_recurrent_weights_are_all_that_act_on_a_state(name: str) -> None:
    """dL/dW is an outer product with what W acts on: where a unit of the state is 0, a column of it is 0."""
    cell, x, state = random_case(name)
    cell.requires_grad_()  # a matrix that is not trained acts on a state, too
    weights = {key: p for key, p in cell.named_parameters() if p.ndim > 1}
    u_0 = cell.project_input(x)[0].detach().requires_grad_()  # of some cells no weight has a part in a step

    def columns(state: Any) -> list[Tensor]:
        """Of each weight, which columns of its gradient are 0 in a step from `state`."""
        y, after = cell.step(u_0, state)
        total = sum((tensor * draw(seeded(2), *tensor.shape)).sum() for tensor in (y, *after))
        grads = torch.autograd.grad(total, list(weights.values()), allow_unused=True, materialize_grads=True)
        return [(grad == 0).all(-2) for grad in grads]

    silenced = clone(state)
    for key, tensor in silenced._asdict().items():
        if key not in cell.counters:
            tensor[..., -1] = 0
    changed = zip(weights, columns(state), columns(silenced), strict=True)
    acting = {key for key, before, after in changed if (after & ~before).any()}
    lost = {key for key in acting if not any(weights[key] is told for told in cell.recurrent_weights())}
    assert not lost, f"the class attribute recurrent={cell.recurrent} leaves out {lost}"


@every_model
def test_state_dict_round_trip(name: str) -> None:
    cell, x, state = random_case(name)
    other = small_cell(name).double()
    other.load_state_dict(cell.state_dict())
    assert_close(scan(other, x, state), scan(cell, x, state), rtol=0, atol=0)


@every_model
def test_step_remembers_nothing_and_changes_nothing(name: str) -> None:
    cell, x, state = random_case(name)
    attributes = {key: dict(vars(module)) for key, module in cell.named_modules()}
    tensors = {**dict(cell.named_parameters()), **dict(cell.named_buffers()), **state._asdict(), "x": x}
    before = {key: tensor.detach().clone() for key, tensor in tensors.items()}
    u = cell.project_input(x)
    u_before = u.detach().clone()
    first, second = (cell.step(u[0], state) for _ in range(2))
    scan(cell, x, state)
    assert {key: dict(vars(module)) for key, module in cell.named_modules()} == attributes
    for key, tensor in tensors.items():
        assert_close(tensor.detach(), before[key], rtol=0, atol=0, msg=f"{key} was changed")
    assert_close(u.detach(), u_before, rtol=0, atol=0)
    assert_close(second, first, rtol=0, atol=0)
