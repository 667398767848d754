"""What a cell promises (hornn.cells.base), tried on two steps of three columns before any training.

The tests see more: `tests/cells/test_contract.py` holds derivatives, chunks and states in use against the contract.
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from hornn.cells.base import Cell, State
from hornn.cells.mlp import UNITS
from hornn.shown import first_line

T, B = 2, 3  # steps and columns
UNBOUNDED = "linear"  # an `activation` beside those with a bound
OF_MODULE = vars(nn.Module()).keys()
OURS, TORCH = str(Path(__file__).parent), str(Path(torch.__file__).parent)


class Trial(NamedTuple):
    """What the parts of a cell gave, by their names, and the state after them."""

    project_input: Tensor  # (T, B, G)
    step: Tensor  # (T, B, W)
    project_output: Tensor  # (T, B, output_size)
    state: State


@torch.no_grad()
def check_contract(cell: Cell) -> None:
    """Raise ValueError, one line that names the class and the part, where a cell breaks its contract.

    The cell runs as in an evaluation, on inputs x (T, B, I). Its modes and the random numbers of the process stay as
    they were.
    """
    random, modes = torch.get_rng_state(), {module: module.training for module in cell.modules()}
    cell.eval()
    try:
        check_attributes(cell)
        x = 0.1 * torch.randn(T, B, cell.input_size, generator=torch.Generator().manual_seed(0))
        held, kept = dict(vars(cell)), {name: tensor.clone() for name, tensor in registered(cell)}
        first, again = try_out(cell, x), try_out(cell, x)
        if not all(map(alike, (*first[:3], *first.state), (*again[:3], *again.state))):
            refuse(cell, "step", "gives other numbers when it is called again: remember nothing on self")
        changed = [name for name, value in vars(cell).items() if value is not held.get(name, refuse)]
        changed += [name for name, tensor in registered(cell) if not same(tensor, kept[name])]
        for name in changed:
            refuse(
                cell,
                f"self.{name}",
                "is set within a step: only y_t and the state are read, and __init__ sets constants",
            )
        for t in range(T):
            for part, given, whole in (
                ("project_input", x, first.project_input),
                ("project_output", first.step, first.project_output),
            ):
                with in_part(type(cell), part):
                    alone = getattr(cell, part)(given[t : t + 1])
                if not alike(alone, whole[t : t + 1]):
                    refuse(cell, part, "mixes steps: each row must be a function of its own row alone")
        other = x.clone()
        other[:, 0] += 1
        for part, before, after in zip(Trial._fields[:3], first, try_out(cell, other), strict=False):
            if not alike(before[:, 1:], after[:, 1:]):
                refuse(cell, part, "mixes columns: another text in column 0 changes what column 1 gives")
        check_names(cell, first.state)
        check_paths(cell, first.project_input[0], x)
        check_gradients(cell, x)
        if type(cell).is_parallel():
            check_all_steps(cell, x, first.state)
    finally:
        torch.set_rng_state(random)
        for module, training in modes.items():
            module.training = training


def check_attributes(cell: Cell) -> None:
    """Raise ValueError unless the constructor has set what a run reads, and all that it trains and keeps."""
    activation = getattr(cell, "activation", None)
    if activation not in (*UNITS, UNBOUNDED):
        refuse(
            cell,
            "__init__",
            'must set self.activation = "tanh", "sigmoid" or "relu", or "linear" for no bound, '
            f"got {activation!r}",
        )
    for name, example in (("recurrent", "W_h"), ("counters", "steps")):
        if not isinstance(names := getattr(cell, name), tuple):
            refuse(cell, name, f'must be a tuple such as ("{example}",), got {names!r}')
    known = {id(tensor) for _, tensor in registered(cell)}
    for path, module in cell.named_modules():
        if isinstance(module, _DropoutNd):
            refuse(
                cell, path, "draws for one process alone: use hornn.columns.drop where self.training says so"
            )
        if isinstance(module, _NormBase):
            refuse(cell, path, "mixes columns: nn.LayerNorm takes each one alone")
        for name, value in vars(module).items():
            if name not in OF_MODULE and any(id(tensor) not in known for tensor in tensors_in(value)):
                refuse(
                    cell,
                    ".".join(filter(None, ("self", path, name))),
                    "holds a tensor that is neither trained nor kept: use self.weight, nn.ParameterList or "
                    "register_buffer",
                )
    for name, weight in cell.named_parameters():
        if not weight.numel():
            refuse(cell, name, f"holds no number, its shape is {list(weight.shape)}: leave it out")
        if not weight.is_contiguous():
            refuse(cell, name, f"must be contiguous, its strides are {weight.stride()}: write .contiguous()")


def registered(cell: Cell) -> Iterator[tuple[str, Tensor]]:
    """What a checkpoint keeps of it, by name."""
    return chain(cell.named_parameters(), cell.named_buffers())


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of an attribute. A tensor that torch computes from other tensors does not count."""
    if isinstance(value, Tensor):
        if value.is_leaf:
            yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(each)


def check_names(cell: Cell, state: State) -> None:
    """Raise ValueError unless `counters` and `histories` tell of tensors that the state has."""
    if not isinstance(cell.histories, Mapping):
        refuse(cell, "histories", f'must be a dict such as {{"history": 0}}, got {cell.histories!r}')
    has = f"the state has: {', '.join(state._fields)}"
    for name in cell.counters:
        if name not in state._fields:
            refuse(cell, "counters", f"names {name!r}; {has}")
    # a class may name what the states of its subclasses hold
    known = [name for name in cell.histories if name in state._fields]
    if cell.histories and not known:
        refuse(cell, "histories", f"names {', '.join(map(repr, cell.histories))}; {has}")
    for name in known:
        tensor, place = getattr(state, name), cell.histories[name]
        if tensor.numel() and not (tensor.ndim > 2 and -len(tensor) <= place < len(tensor)):
            refuse(cell, "histories", f"has no place {place!r} in state.{name} {tuple(tensor.shape)}")


def check_paths(cell: Cell, u_t: Tensor, x: Tensor) -> None:
    """Raise ValueError unless it tells its paths as tensors (B, width) by name."""
    with in_part(type(cell), "paths"):
        told = cell.paths(u_t, cell.initial_state(B))
    if not isinstance(told, Mapping):
        refuse(cell, "paths", f"must give a dict of tensors ({B}, any), got {kind(told)}")
    for name, tensor in told.items():
        check_tensor(cell, "paths", str(name), tensor, (B, None), x)


def try_out(cell: Cell, x: Tensor, begin: State | None = None) -> Trial:
    """Run the cell over x (T, B, I) from its first state, or from `begin`, and look at all that it gives."""
    torch.default_generator.manual_seed(0)
    given = x.clone()
    with in_part(type(cell), "initial_state"):
        state = cell.initial_state(B) if begin is None else begin
    check_state(cell, "initial_state", state, x)
    for name, tensor in state._asdict().items():
        if tensor.requires_grad:  # seen where gradients are on
            refuse(cell, "initial_state", f"must give state.{name} as a constant, which is not trained")
    with in_part(type(cell), "project_input"):
        u = cell.project_input(x)
    if not same(given, x):
        refuse(cell, "project_input", "changes x in place: make a new tensor")
    check_tensor(cell, "project_input", "u", u, (T, B, None), x)
    outputs = []
    for u_t in u.unbind(0):
        before = [tensor.clone() for tensor in (u_t, *state)]
        with in_part(type(cell), "step"):
            made = cell.step(u_t, state)
        if not isinstance(made, tuple) or len(made) != 2:
            refuse(cell, "step", f"must return y_t and the next state, got {kind(made)}")
        for name, was, now in zip(
            ("u_t", *(f"state.{field}" for field in state._fields)), before, (u_t, *state), strict=True
        ):
            if not same(was, now):
                refuse(cell, "step", f"changes {name} in place: make a new tensor")
        y_t, after = made
        check_tensor(cell, "step", "y_t", y_t, (B, None), x)
        check_state(cell, "step", after, x, state)
        outputs.append(y_t)
        state = after
    if outputs[0].shape != outputs[1].shape:
        refuse(
            cell, "step", f"gives y_t of two shapes: {list(outputs[0].shape)} and {list(outputs[1].shape)}"
        )
    y = torch.stack(outputs)
    with in_part(type(cell), "project_output"):
        out = cell.project_output(y)
    last = "step" if type(cell).project_output is Cell.project_output else "project_output"
    check_tensor(cell, last, "y of all steps", out, (T, B, None), x)
    if out.shape[-1] != cell.output_size:
        refuse(
            cell,
            last,
            f"gives y of width {out.shape[-1]}, where the cell says {cell.output_size}: tell "
            "super().__init__(input_size, hidden_size, output_size) the width of y",
        )
    if not out.isfinite().all():
        refuse(cell, last, "gives nan or inf within two steps: see its equations and network.init_std")
    return Trial(u, y, out, state)


@torch.enable_grad()
def check_all_steps(cell: Cell, x: Tensor, state: State) -> None:
    """Raise ValueError unless all steps at once give what the steps give, from a state that is not the first one."""
    u, steps, _, after = try_out(cell, x, state)
    with in_part(type(cell), "all_steps"):
        made = cell.all_steps(u.clone(), state)
    if not isinstance(made, tuple) or len(made) != 2:
        refuse(cell, "all_steps", f"must return y and the state after all steps, got {kind(made)}")
    with in_part(type(cell), "state_after"):
        alone = cell.state_after(u.clone(), state)
    y = made[0]
    check_tensor(cell, "all_steps", "y", y, tuple(steps.shape), x)
    if not alike(y, steps):
        refuse(cell, "all_steps", "gives other outputs than the steps, from the state after two steps")
    for part, found in (("all_steps", made[1]), ("state_after", alone)):
        check_state(cell, part, found, x, state)
        for name, tensor in after._asdict().items():
            if not alike(getattr(found, name), tensor):
                refuse(cell, part, f"gives another state.{name} than the steps")
    if steps.requires_grad:
        weights = [weight for weight in cell.parameters() if weight.requires_grad]
        if not y.requires_grad or not all(map(alike, grads_of(y, weights), grads_of(steps, weights))):
            refuse(cell, "all_steps", "gives other gradients than the steps")


def grads_of(y: Tensor, weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """Of the sum of squares of outputs, with respect to these weights; zeros where there is none."""
    return torch.autograd.grad(y.square().sum(), weights, retain_graph=True, materialize_grads=True)


@torch.enable_grad()
def check_gradients(cell: Cell, x: Tensor) -> None:
    """Raise ValueError unless every weight has a finite gradient of what two steps from the first state give."""
    made = try_out(cell, x)
    ends = [tensor.sum() for tensor in (made.project_output, *made.state) if tensor.requires_grad]
    weights = {name: weight for name, weight in cell.named_parameters() if weight.requires_grad}
    grads: Sequence[Tensor | None] = [None] * len(weights)
    if ends and weights:
        try:
            grads = torch.autograd.grad(ends, list(weights.values()), allow_unused=True)
        except Exception as error:  # a tensor that the step made is not what autograd kept
            why = first_line(error).partition(" Hint:")[0]
            remedy = "where it changes a tensor of its own in place, make a new one"
            refuse(cell, "step", f"cannot be differentiated: {remedy} ({why})")
    for (name, _), grad in zip(weights.items(), grads, strict=True):
        if grad is None:
            refuse(cell, name, "gets no gradient: use it, without .data or .detach(), or leave it out")
        if not grad.isfinite().all():
            refuse(cell, name, "gets a gradient with nan or inf from two steps: see its equations")


def check_state(cell: Cell, part: str, state: Any, x: Tensor, before: State | None = None) -> None:
    """Raise ValueError unless `state` is a NamedTuple of tensors (..., B, width).

    before: the state of the step before, whose type and shapes this one must have; None for the first state.
    """
    named = isinstance(state, tuple) and hasattr(state, "_fields")
    if not named:
        refuse(cell, part, f"must give its state as a NamedTuple of tensors, got {kind(state)}")
    if before is not None and type(state) is not type(before):
        refuse(cell, part, f"must give a state like the one before, {kind(before)}, got {kind(state)}")
    for name, tensor in state._asdict().items():
        shape = (..., B, None) if before is None else tuple(getattr(before, name).shape)
        check_tensor(cell, part, f"state.{name}", tensor, shape, x)


def check_tensor(cell: Cell, part: str, name: str, tensor: Any, shape: Sequence[Any], x: Tensor) -> None:
    """Raise ValueError unless it is a tensor of the dtype of x and of this shape; None: any size, ...: any sizes."""
    written = f"({', '.join('...' if n is ... else 'any' if n is None else str(n) for n in shape)})"
    if not isinstance(tensor, Tensor):
        refuse(cell, part, f"must give {name} as a tensor {written}, got {kind(tensor)}")
    sizes = shape[1:] if shape[0] is ... else shape
    found = tensor.shape[-len(sizes) :] if shape[0] is ... else tensor.shape
    if len(found) != len(sizes) or any(n not in (None, m) for n, m in zip(sizes, found, strict=True)):
        refuse(cell, part, f"must give {name} as {written} for {B} columns, got {tuple(tensor.shape)}")
    if tensor.dtype != x.dtype:
        counts = "" if tensor.is_floating_point() else ", and `counters` for what counts"
        refuse(
            cell,
            part,
            f"must give {name} in {x.dtype}, as the weights, got {tensor.dtype}: see self.zeros{counts}",
        )


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same but for rounding, which is of the largest numbers that are added up."""
    if one.shape != other.shape:
        return False
    largest = float(other.detach().nan_to_num(0.0, 0.0, 0.0).abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=1e-4, atol=1e-6 + 1e-5 * largest, equal_nan=True)


def same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)}"
    several = f" of {len(value)}" if type(value) is tuple else ""
    return f"a {type(value).__name__}{several}"


def refuse(cell: Cell, part: str, why: str) -> NoReturn:
    raise ValueError(f"{name_of(type(cell), part)} {why}")


def name_of(cell: type, part: str) -> str:
    return f"{cell.__module__}.{cell.__qualname__}.{part}"


@contextmanager
def in_part(cell: type, part: str) -> Iterator[None]:
    """Within it an error of the cell's own code is a ValueError that names class, part and line.

    What the program's own checks say of a constructor's arguments stays as it is.
    """
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, ValueError) and part == "__init__" and frames[-1].filename.startswith(OURS):
            raise
        line = next(frame for frame in reversed(frames) if not frame.filename.startswith(TORCH))
        raise ValueError(
            f"{name_of(cell, part)} fails: {type(error).__name__}: {first_line(error)} ({line.filename}:{line.lineno}; "
            "HYDRA_FULL_ERROR=1 shows the whole way)"
        ) from error
