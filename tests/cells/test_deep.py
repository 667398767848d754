"""Deep recurrent networks against their transcriptions, and the limits that the equations give."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from cells.deep_cells import BETWEEN, INPUT, OUT, STARRED, B, H, T, deep_cell, stacked_cell
from hornn.cells.base import INIT_STD
from hornn.cells.deep import DeepRnn
from hornn.cells.elman import Rnn
from hornn.scan import scan
from reference import deep as reference
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, seeded, weights_of


def transcribe_units(name: str, cell: DeepRnn, key: str, pieces: int, p: float) -> Any:
    """The NumPy activation of one layer, which the cell keeps as the submodule `key`."""
    if name == "maxout":
        return partial(reference.maxout, pieces=pieces)
    if name == "lp":
        learned = weights_of(cell).get(f"{key}.units.b_p")
        if learned is not None:
            start = np.log(np.exp(p - 1) - 1)  # p = 1 + log(1 + e^start)
            p = 1 + np.log1p(np.exp(start + learned))
        return partial(reference.lp, pieces=pieces, p=p)
    return ACTIVATIONS[name]


def transcribe(cell: DeepRnn, x: Tensor, state: Any, arguments: dict[str, Any]) -> Any:
    """What the transcription makes of the cell that was built with these arguments."""
    given = {
        "transition_depth": 2,
        "output_depth": 1,
        "shortcuts": False,
        "input_layers": "all",
        "transition_activation": "sigmoid",
        "state_activation": "sigmoid",
        "output_activation": "sigmoid",
        "pieces": 2,
        "p": 2.0,
    } | arguments
    weights, L, M = weights_of(cell), given["transition_depth"], given["output_depth"]
    names = [given["transition_activation"]] * (L - 1) + [given["state_activation"]]
    pre_widths = [len(weights[f"plus.{level}.W"]) for level in range(L)]
    fed = {"all": list(range(L)), "first": [0], "last": [L - 1]}[given["input_layers"]]
    U: list[Any] = [None] * L
    row = 0
    for level in fed:
        U[level] = weights["W_in"][row : row + pre_widths[level]]
        row += pre_widths[level]
    assert row == len(weights["W_in"])
    units = partial(transcribe_units, cell=cell, pieces=given["pieces"], p=given["p"])
    return reference.deep_rnn(
        x.numpy(),
        as_arrays(state),
        f=[units(name, key=f"plus.{level}") for level, name in enumerate(names)],
        g=[units(given["output_activation"], key=f"predict.{m}") for m in range(M - 1)],
        W=[weights[f"plus.{level}.W"] for level in range(L)],
        U=U,
        S=[weights.get(f"plus.{level}.S") for level in range(L)],
        V=[weights[f"predict.{m}.W"] for m in range(M - 1)],
        b=[weights.get(f"plus.{level}.b", 0.0) for level in range(L)],
        c=[weights.get(f"predict.{m}.b", 0.0) for m in range(M - 1)],
    )


def simple_rnn(W_in: Tensor, W_h: Tensor, x: Tensor, h: Tensor, activation: str = "sigmoid") -> Tensor:
    """The outputs of an Elman cell without bias that has these weights."""
    cell = Rnn(input_size=x.shape[-1], hidden_size=len(h[0]), activation=activation).double()
    with torch.no_grad():
        cell.W_in.copy_(W_in)
        cell.W_h.copy_(W_h)
    y, _ = scan(cell, x, type(cell.initial_state(len(h)))(h))
    return y


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"bias": True},
        {"transition_size": BETWEEN},
        {"transition_size": BETWEEN, "shortcuts": True},
        {"transition_depth": 1},
        {"transition_depth": 4, "transition_size": BETWEEN, "shortcuts": True, "bias": True},
        {"input_layers": "first", "transition_depth": 3, "transition_size": BETWEEN},
        {"input_layers": "last", "transition_depth": 3, "transition_size": BETWEEN},
        {"transition_depth": 1, "output_depth": 2, "output_size": OUT},
        {"transition_depth": 1, "output_depth": 4, "output_size": OUT, "bias": True},
        {"transition_size": BETWEEN, "output_depth": 2, "output_size": OUT},
        {"transition_size": BETWEEN, "shortcuts": True, "output_depth": 3, "output_size": OUT, "bias": True},
        {"transition_activation": "relu", "state_activation": "tanh"},
        {"output_depth": 2, "output_activation": "relu"},
        {"transition_activation": "lp", "p": 3.0, "transition_size": BETWEEN},
        {"transition_activation": "maxout", "pieces": 4, "shortcuts": True, "bias": True},
        {"state_activation": "lp", "p": 1.3, "learn_p": True, "shortcuts": True},
        {"shortcuts": True, "output_depth": 2, "output_size": OUT, "learn_p": True, "bias": True, **STARRED},
    ],
    ids=str,
)
def test_equals_the_transcription(arguments: dict[str, Any]) -> None:
    cell, generator = deep_cell(1, **arguments), seeded(2)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    expected_y, (expected_h,) = transcribe(cell, x, state, arguments)
    assert y.shape == (T, B, cell.output_size)
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("input_shortcuts", [False, True])
@pytest.mark.parametrize("output_shortcuts", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_stack_equals_the_transcription(
    depth: int, output_shortcuts: bool, input_shortcuts: bool, activation: str, bias: bool
) -> None:
    cell = stacked_cell(
        depth,
        depth=depth,
        input_shortcuts=input_shortcuts,
        output_shortcuts=output_shortcuts,
        activation=activation,
        bias=bias,
    )
    generator = seeded(3)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    weights = weights_of(cell)
    expected_y, (expected_h,) = reference.stacked_rnn(
        x.numpy(),
        as_arrays(state),
        ACTIVATIONS[activation],
        W=[weights[f"W_h.{level}"] for level in range(depth)],
        U=[weights["W_in"][:H], *(weights[f"U.{level}"] for level in range(depth - 1))],
        X=np.split(weights["W_in"][H:], depth - 1) if input_shortcuts and depth > 1 else None,
        b=weights.get("b"),
        all_levels=output_shortcuts,
    )
    assert y.shape == (T, B, cell.output_size)
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_depth_one_is_the_simple_rnn(activation: str) -> None:
    generator = seeded(4)
    x, h = draw(generator, T, B, INPUT), draw(generator, B, H)
    shallow = deep_cell(5, transition_depth=1, state_activation=activation)
    y, _ = scan(shallow, x, type(shallow.initial_state(B))(h))
    assert_close(y, simple_rnn(shallow.W_in, shallow.plus[0].W, x, h, activation), rtol=1e-12, atol=1e-12)
    stack = stacked_cell(5, depth=1, activation=activation)
    y, _ = scan(stack, x, type(stack.initial_state(B))(h[None]))
    assert_close(y, simple_rnn(stack.W_in, stack.W_h[0], x, h, activation), rtol=1e-12, atol=1e-12)


def test_shortcuts_of_zero_are_none() -> None:
    plain, short = deep_cell(6, transition_depth=3), deep_cell(7, transition_depth=3, shortcuts=True)
    missing, unexpected = short.load_state_dict(plain.state_dict(), strict=False)
    assert (missing, unexpected) == (["plus.1.S", "plus.2.S"], [])
    with torch.no_grad():
        short.plus[1].S.zero_()
        short.plus[2].S.zero_()
    x, state = draw(seeded(8), T, B, INPUT), plain.initial_state(B)
    assert_close(scan(short, x, state), scan(plain, x, state), rtol=0, atol=0)


def test_a_shortcut_alone_is_the_simple_rnn() -> None:
    cell = deep_cell(9, shortcuts=True, input_layers="last")
    with torch.no_grad():
        cell.plus[1].W.zero_()
    x, h = draw(seeded(10), T, B, INPUT), draw(seeded(11), B, H)
    y, _ = scan(cell, x, type(cell.initial_state(B))(h))
    assert_close(y, simple_rnn(cell.W_in, cell.plus[1].S, x, h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("input_layers", "rows"), [("first", slice(0, H)), ("last", slice(2 * H, 3 * H))])
def test_input_of_zero_weight_is_none(input_layers: str, rows: slice) -> None:
    fed_all = deep_cell(12, transition_depth=3)
    fed_one = deep_cell(13, transition_depth=3, input_layers=input_layers)
    with torch.no_grad():
        fed_one.plus.load_state_dict(fed_all.plus.state_dict())
        fed_one.W_in.copy_(fed_all.W_in[rows])
        fed_all.W_in.zero_()
        fed_all.W_in[rows] = fed_one.W_in
    x, state = draw(seeded(14), T, B, INPUT), fed_all.initial_state(B)
    assert_close(scan(fed_one, x, state), scan(fed_all, x, state), rtol=1e-12, atol=1e-12)


def test_a_deep_output_starts_as_asked() -> None:
    """V_m of the same draws on another scale, c_m at one value; all other weights as without."""
    size, one = {"output_depth": 3, "output_size": OUT}, {"rtol": 1e-6, "atol": 0}
    torch.manual_seed(0)
    plain = DeepRnn(INPUT, H, **size)
    torch.manual_seed(0)
    asked = DeepRnn(INPUT, H, **size, output_std=0.01, output_bias=0.1)
    for layer, other in zip(asked.predict, plain.predict, strict=True):
        assert_close(layer.W, other.W * (0.01 / INIT_STD), **one)
        assert other.b is None
        assert_close(layer.b, torch.full((OUT,), 0.1))
    for layer, other in zip(asked.plus, plain.plus, strict=True):
        assert layer.b is None
        assert_close(layer.W, other.W, rtol=0, atol=0)
    assert_close(asked.W_in, plain.W_in, rtol=0, atol=0)
    given = DeepRnn(INPUT, H, **size, bias=True, output_bias=0.1)
    assert [float(layer.b.detach().mean()) for layer in given.plus] == [0, 0]
    assert [round(float(layer.b.detach().mean()), 6) for layer in given.predict] == [0.1, 0.1]


def test_a_deep_output_is_a_perceptron_on_the_states() -> None:
    cell = deep_cell(15, transition_depth=1, output_depth=3, output_size=OUT, output_activation="relu")
    x, h = draw(seeded(16), T, B, INPUT), draw(seeded(17), B, H)
    y, last = scan(cell, x, type(cell.initial_state(B))(h))
    states = simple_rnn(cell.W_in, cell.plus[0].W, x, h)
    V_1, V_2 = (layer.W for layer in cell.predict)
    assert_close(y, (states @ V_1.T).relu().matmul(V_2.T).relu(), rtol=1e-12, atol=1e-12)
    assert_close(last.h, states[-1], rtol=1e-12, atol=1e-12)


def test_a_stack_is_simple_rnns_on_top_of_each_other() -> None:
    cell = stacked_cell(18, depth=3, output_shortcuts=True)
    x, h = draw(seeded(19), T, B, INPUT), draw(seeded(20), 3, B, H)
    y, _ = scan(cell, x, type(cell.initial_state(B))(h))
    below, levels = x, []
    for level, W_in in enumerate([cell.W_in, *cell.U]):
        below = simple_rnn(W_in, cell.W_h[level], below, h[level])
        levels.append(below)
    assert_close(y, torch.cat(levels, dim=-1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("learn_p", [False, True])
def test_gradients_of_units_of_pieces_are_the_derivatives(learn_p: bool) -> None:
    """The contract's gradient check, for the network of the last column of table 2."""
    cell = deep_cell(
        23, shortcuts=True, output_depth=2, output_size=OUT, learn_p=learn_p, bias=True, **STARRED
    )
    names = [name for name, _ in cell.named_parameters()]
    state_class = type(cell.initial_state(1))

    class Scan(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
            y, last = scan(self.cell, x, state_class(h))
            return y, last.h

    def outputs(x: Tensor, h: Tensor, *parameters: Tensor) -> Any:
        named = {f"cell.{name}": p for name, p in zip(names, parameters, strict=True)}
        return torch.func.functional_call(Scan(), named, (x, h))

    leaves = [draw(seeded(24), 3, 2, INPUT), draw(seeded(25), 2, H), *cell.parameters()]
    assert torch.autograd.gradcheck(outputs, [leaf.detach().clone().requires_grad_() for leaf in leaves])


@pytest.mark.parametrize("units", ["lp", "maxout"])
def test_gradients_are_finite_from_the_zero_state(units: str) -> None:
    """With no input and no state all pieces tie at 0."""
    cell = deep_cell(26, transition_activation=units, output_depth=2, output_activation=units)
    y, _ = scan(cell, torch.zeros(T, B, INPUT).double(), cell.initial_state(B))
    y.sum().backward()
    assert y.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in cell.parameters())


@pytest.mark.parametrize("part", ["transition_dropout", "output_dropout"])
def test_dropout_is_for_training_alone_and_for_its_part_alone(part: str) -> None:
    arguments = {"shortcuts": True, "output_depth": 2}
    plain, dropping = deep_cell(27, **arguments), deep_cell(27, **arguments, **{part: 0.5})
    x, state = draw(seeded(28), T, B, INPUT), plain.initial_state(B)
    expected_y, expected = scan(plain, x, state)
    y, last = scan(dropping.eval(), x, state)
    assert_close((y, last), (expected_y, expected), rtol=0, atol=0)
    torch.manual_seed(0)
    y, last = scan(dropping.train(), x, state)
    assert (y != expected_y).any()
    assert (last.h != expected.h).any() == (part == "transition_dropout")
    assert (last.h != 0).all()  # a sigmoid state of 0 would be a dropped one


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dropped_units_of_the_output_do_not_count_as_saturated(activation: str) -> None:
    cell = deep_cell(29, output_depth=2, output_activation=activation, output_dropout=0.75)
    torch.manual_seed(0)
    nn.init.normal_(cell.predict[0].W)
    h = 4 * torch.randn(100, 50, cell.hidden_size, dtype=torch.float64)
    expected = cell.eval().saturation(cell.project_output(h))
    assert 0.2 < expected < 0.8
    assert cell.train().saturation(cell.project_output(h)) == pytest.approx(expected, abs=0.02)


def test_the_activation_is_that_of_the_output() -> None:
    activations = {"state_activation": "tanh", "output_activation": "relu"}
    assert deep_cell(0, **activations).activation == "tanh"
    assert deep_cell(0, **activations, output_depth=2).activation == "relu"
