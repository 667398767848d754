"""The acoustic networks against their transcriptions, in the limits of their equations, and their sizes."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.hornn import Hornn
from hornn.cells.hornn_acoustic import ReluHornn, ReluHornnp, ResRnn, SigmoidHornn, SigmoidHornnp
from hornn.cells.lstm import Lstm, Lstmp
from hornn.scan import scan
from reference import hornn_acoustic as reference
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, build_cell, draw, draw_state, fill, seeded, weights_of

T, B, INPUT, H, P = 7, 3, 4, 6, 3
NETWORKS = {
    "hornn_relu": (ReluHornn, reference.hornn_relu),
    "hornn_sigmoid": (SigmoidHornn, reference.hornn_sigmoid),
    "hornnp_relu": (ReluHornnp, reference.hornnp_relu),
    "hornnp_sigmoid": (SigmoidHornnp, reference.hornnp_sigmoid),
    "resrnn": (ResRnn, reference.resrnn),
}
PROJECTED = ("hornnp_relu", "hornnp_sigmoid", "lstmp")
TAPS = [
    *[("hornn_relu", {"n": n}) for n in (1, 2, 4, 9)],
    *[("hornn_sigmoid", {"n": n, "m": m}) for n, m in ((2, 1), (1, 1), (2, 3), (4, 2), (9, 1), (1, 9))],
    *[("hornnp_relu", {"n": n, "projection_size": P}) for n in (1, 4, 9)],
    *[
        ("hornnp_sigmoid", {"n": n, "m": m, "projection_size": P})
        for n, m in ((2, 1), (1, 3), (4, 2), (9, 9))
    ],
    *[("resrnn", {"m": m}) for m in (1, 2, 9)],
]


def copy(cell: torch.nn.Module, **weights: Tensor) -> Any:
    """The cell in float64 with these parameters, all of them."""
    cell.double().load_state_dict({name: weight.detach() for name, weight in weights.items()})
    return cell


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("name", "arguments"), TAPS, ids=str)
def test_equals_the_transcription(name: str, arguments: dict[str, int], activation: str, bias: bool) -> None:
    generator = seeded(1)
    network, transcription = NETWORKS[name]
    cell = fill(network(INPUT, H, **arguments, activation=activation, bias=bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    taps = {key: value for key, value in arguments.items() if key in "mn"}
    expected_y, expected_last = transcription(
        x.numpy(), as_arrays(state), ACTIVATIONS[activation], **weights_of(cell), **taps
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(tuple(last), tuple(map(torch.from_numpy, expected_last)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_lstmp_equals_the_transcription(bias: bool) -> None:
    generator = seeded(2)
    cell = fill(Lstmp(INPUT, H, P, bias=bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    expected_y, expected_last = reference.lstmp(x.numpy(), as_arrays(state), **weights_of(cell))
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(tuple(last), tuple(map(torch.from_numpy, expected_last)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_lstmp_equals_torch_with_copied_weights(bias: bool) -> None:
    generator = seeded(3)
    cell = fill(Lstmp(INPUT, H, P, bias=bias), generator)
    theirs = torch.nn.LSTM(INPUT, H, bias=bias, proj_size=P, dtype=torch.float64)
    copies = {"W_in": theirs.weight_ih_l0, "W_h": theirs.weight_hh_l0, "P": theirs.weight_hr_l0}
    if bias:
        copies["b"] = theirs.bias_ih_l0
        torch.nn.init.zeros_(theirs.bias_hh_l0)
    with torch.no_grad():
        for name, parameter in copies.items():
            parameter.copy_(cell.get_parameter(name))
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    their_y, (their_r, their_c) = theirs(x, (state.r[None], state.c[None]))
    assert_close(y, their_y, rtol=1e-12, atol=1e-12)
    assert_close((last.r, last.c), (their_r[0], their_c[0]), rtol=1e-12, atol=1e-12)


def test_relu_hornn_is_the_hornn_with_its_first_and_last_matrix() -> None:
    generator = seeded(4)
    cell = fill(ReluHornn(INPUT, H, n=4), generator)
    zero = torch.zeros(H, H, dtype=torch.float64)
    W_h = torch.stack([cell.U_1, zero, zero, cell.U_n])
    other = copy(Hornn(INPUT, H, order=4, activation="relu", bias=True), W_in=cell.W_in, W_h=W_h, b=cell.b)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state)
    assert_close(y, scan(other, x, type(other.initial_state(B))(*state))[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (2, 2), (1, 3)])
def test_sigmoid_hornn_is_the_hornn_with_an_identity_added(n: int, m: int) -> None:
    generator = seeded(5)
    cell = fill(SigmoidHornn(INPUT, H, n=n, m=m), generator)
    W_h = torch.zeros(max(n, m), H, H, dtype=torch.float64)
    W_h[0] += cell.U_1.detach()
    W_h[n - 1] += cell.U_n.detach()
    W_h[m - 1] += torch.eye(H)
    other = copy(Hornn(INPUT, H, order=max(n, m), bias=True), W_in=cell.W_in, W_h=W_h, b=cell.b)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state)
    assert_close(y, scan(other, x, type(other.initial_state(B))(*state))[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("projected", "plain"), [(ReluHornnp, ReluHornn), (SigmoidHornnp, SigmoidHornn)], ids=["relu", "sigmoid"]
)
def test_hornnp_is_the_hornn_whose_matrices_are_products_with_p(projected: Any, plain: Any) -> None:
    generator = seeded(6)
    cell = fill(projected(INPUT, H, P), generator)
    other = copy(plain(INPUT, H), W_in=cell.W_in, U_1=cell.U_p1 @ cell.P, U_n=cell.U_pn @ cell.P, b=cell.b)
    x = draw(generator, T, B, INPUT)
    y, _ = scan(cell, x, cell.initial_state(B))
    h, _ = scan(other, x, other.initial_state(B))
    assert_close(y, h @ cell.P.T, rtol=1e-12, atol=1e-12)


def test_lstmp_with_the_identity_is_the_lstm() -> None:
    generator = seeded(7)
    cell = fill(Lstmp(INPUT, H, projection_size=H), generator)
    with torch.no_grad():
        cell.P.copy_(torch.eye(H))
    other = copy(Lstm(INPUT, H, bias=True), W_in=cell.W_in, W_h=cell.W_h, b=cell.b)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state)
    assert_close(y, scan(other, x, type(other.initial_state(B))(*state))[0], rtol=1e-14, atol=1e-14)


def test_resrnn_without_its_second_matrix_repeats_the_activation_of_the_old_state() -> None:
    generator = seeded(8)
    cell = fill(ResRnn(INPUT, H, m=2), generator)
    with torch.no_grad():
        cell.U_d2.zero_()
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state)
    assert_close(y[:2], state.history.flip(0).sigmoid(), rtol=1e-14, atol=1e-14)
    assert_close(y[2:], y[:-2].sigmoid(), rtol=1e-14, atol=1e-14)


def test_relu_hornn_whose_taps_are_one_is_the_rnn() -> None:
    generator = seeded(9)
    cell = fill(ReluHornn(INPUT, H, n=1, activation="tanh", bias=False), generator)
    other = copy(Rnn(INPUT, H, activation="tanh"), W_in=cell.W_in, W_h=cell.U_1 + cell.U_n)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state)
    assert_close(y, scan(other, x, type(other.initial_state(B))(state.history[0]))[0], rtol=1e-12, atol=1e-12)


def test_the_projection_is_half_the_state_unless_given() -> None:
    for name in PROJECTED:
        assert build_cell(name, INPUT, hidden_size=6).output_size == 3
        assert build_cell(name, INPUT, hidden_size=7).output_size == 4
        assert build_cell(name, INPUT, hidden_size=6, projection_size=2).output_size == 2
        assert build_cell(name, INPUT, hidden_size=6, projection_size=6).output_size == 6


@pytest.mark.parametrize("name", [*NETWORKS, "lstmp"])
def test_the_recurrent_weights_are_all_but_the_input_and_the_bias(name: str) -> None:
    cell = build_cell(name, INPUT, hidden_size=H, bias=True)
    others = {id(parameter) for parameter in (cell.W_in, cell.b)}
    expected = [parameter for parameter in cell.parameters() if id(parameter) not in others]
    assert list(map(id, cell.recurrent_weights())) == list(map(id, expected))


def millions(name: str, layers: int = 1, **sizes: int) -> str:
    """The parameters of a stack on the 80 inputs that fit the poster's numbers, rounded as printed there."""
    cells, width = [], 80
    for _ in range(layers):
        cells.append(build_cell(name, width, **sizes))
        width = cells[-1].output_size
    return f"{sum(parameter.numel() for cell in cells for parameter in cell.parameters()) / 1e6:.1f}M"


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("lstm", "1.2M"), ("hornn_relu", "0.5M"), ("hornn_sigmoid", "0.5M"), ("resrnn", "0.5M")],
)
def test_500_units_have_the_published_number_of_parameters(name: str, expected: str, bias: bool) -> None:
    """Poster, figure 2. The 80 inputs are a hypothesis that fits every number; biases do not show."""
    assert millions(name, hidden_size=500, bias=bias) == expected


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("names", "layers", "hidden", "projection", "expected"),
    [
        (["lstmp"], 1, 600, 300, "1.1M"),
        (["lstmp"], 2, 500, 250, "1.9M"),
        (["hornnp_relu", "hornnp_sigmoid"], 1, 500, 125, "0.2M"),
        (["hornnp_relu", "hornnp_sigmoid"], 1, 500, 250, "0.4M"),
        (["hornnp_relu", "hornnp_sigmoid"], 1, 800, 400, "1.0M"),
        (["hornnp_relu", "hornnp_sigmoid"], 2, 500, 250, "0.9M"),
    ],
)
def test_hypothetical_sizes_have_the_published_number_of_parameters(
    names: list[str], layers: int, hidden: int, projection: int, expected: str, bias: bool
) -> None:
    """Poster, table 1, which prints no sizes: these, on 80 inputs, are a hypothesis that fits all of it."""
    for name in names:
        assert millions(name, layers, hidden_size=hidden, projection_size=projection, bias=bias) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        *[(name, {"projection_size": 7}, ["projection_size", "hidden_size = 6", "7"]) for name in PROJECTED],
        *[(name, {"projection_size": 0}, ["projection_size", ">= 1", "0"]) for name in PROJECTED],
    ],
    ids=str,
)
def test_refuses(name: str, arguments: dict[str, Any], words: list[str]) -> None:
    network = Lstmp if name == "lstmp" else NETWORKS[name][0]
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        network(INPUT, **({"hidden_size": H} | arguments))
    assert all(word in str(caught.value) for word in words), str(caught.value)
