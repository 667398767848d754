"""The four higher-order cells against their transcriptions, and the limits that the equations give."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn, MaxHornn
from hornn.scan import scan
from reference import hornn as reference
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of

T, B, INPUT, H = 7, 3, 4, 6
ALPHA = 0.6
LONGER_THAN_THE_CHUNK = T + 2
CELLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (Hornn, reference.hornn),
    "max": (MaxHornn, reference.hornn_max),
    "fofe": (partial(FofeHornn, alpha=ALPHA), partial(reference.hornn_fofe, alpha=ALPHA)),
    "gated": (GatedHornn, reference.hornn_gated),
}


def build(cell_class: Callable[..., Any], order: int, activation: str = "tanh", bias: bool = False) -> Any:
    return cell_class(input_size=INPUT, hidden_size=H, order=order, activation=activation, bias=bias)


def run(cell: Any, x: Tensor, history: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and final history (K, B, H), from the given history."""
    y, last = scan(cell, x, type(cell.initial_state(B))(history))
    return y, last.history


def simple_rnn(W_in: Tensor, W_h: Tensor, x: Tensor, h: Tensor, activation: str = "tanh") -> Tensor:
    """The outputs of a first-order cell without bias that has these weights."""
    cell = Rnn(input_size=INPUT, hidden_size=H, activation=activation, bias=False).double()
    with torch.no_grad():
        cell.W_in.copy_(W_in)
        cell.W_h.copy_(W_h)
    y, _ = scan(cell, x, type(cell.initial_state(len(h)))(h))
    return y


def copy_shared_weights(source: Any, target: Any) -> None:
    """W_in, W_h and b, which all four higher-order cells have in the same shapes."""
    shared = {name: p for name, p in source.named_parameters() if name in ("W_in", "W_h", "b")}
    with torch.no_grad():
        for name, parameter in shared.items():
            target.get_parameter(name).copy_(parameter)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("order", [1, 2, 3, 5, LONGER_THAN_THE_CHUNK])
@pytest.mark.parametrize("pooling", CELLS)
def test_equals_the_transcription(pooling: str, order: int, activation: str, bias: bool) -> None:
    cell_class, transcription = CELLS[pooling]
    generator = seeded(order)
    cell = fill(build(cell_class, order, activation, bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, last = scan(cell, x, state)
    expected_y, (expected_history,) = transcription(
        x.numpy(), as_arrays(state), ACTIVATIONS[activation], **weights_of(cell)
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.history, torch.from_numpy(expected_history), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pooling", CELLS)
def test_equals_the_transcription_from_the_initial_state(pooling: str) -> None:
    cell_class, transcription = CELLS[pooling]
    generator = seeded(4)
    cell = fill(build(cell_class, order=3, activation="sigmoid"), generator)
    x, state = draw(generator, T, B, INPUT), cell.initial_state(B)
    y, last = scan(cell, x, state)
    expected_y, (expected_history,) = transcription(
        x.numpy(), as_arrays(state), ACTIVATIONS["sigmoid"], **weights_of(cell)
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.history, torch.from_numpy(expected_history), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pooling", CELLS)
def test_history_is_the_latest_outputs_newest_first_then_what_was_given(pooling: str) -> None:
    generator = seeded(5)
    cell = fill(build(CELLS[pooling][0], LONGER_THAN_THE_CHUNK), generator)
    given = draw(generator, LONGER_THAN_THE_CHUNK, B, H)
    y, history = run(cell, draw(generator, T, B, INPUT), given)
    assert_close(history, torch.cat([y.flip(0), given])[:LONGER_THAN_THE_CHUNK], rtol=0, atol=0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("pooling", "scale"), [("sum", 1.0), ("max", 1.0), ("fofe", ALPHA)])
def test_order_one_is_the_simple_rnn(pooling: str, scale: float, activation: str) -> None:
    generator = seeded(6)
    cell = fill(build(CELLS[pooling][0], 1, activation), generator)
    x, history = draw(generator, T, B, INPUT), draw(generator, 1, B, H)
    y, _ = run(cell, x, history)
    expected = simple_rnn(cell.W_in, scale * cell.W_h[0], x, history[0], activation)
    assert_close(y, expected, rtol=1e-12, atol=1e-12)


def test_a_single_tap_at_delay_k_is_k_interleaved_simple_rnns() -> None:
    generator = seeded(7)
    order = 3
    cell = fill(build(Hornn, order), generator)
    with torch.no_grad():
        cell.W_h[: order - 1] = 0.0
    x, history = draw(generator, T, B, INPUT), draw(generator, order, B, H)
    y, _ = run(cell, x, history)
    for phase in range(order):
        expected = simple_rnn(cell.W_in, cell.W_h[order - 1], x[phase::order], history[order - 1 - phase])
        assert_close(y[phase::order], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", [2, 4])
def test_fofe_is_the_sum_with_matrices_that_fade(order: int) -> None:
    generator = seeded(8)
    fofe, plain = fill(build(CELLS["fofe"][0], order), generator), build(Hornn, order).double()
    copy_shared_weights(fofe, plain)
    with torch.no_grad():
        for n in range(1, order + 1):
            plain.W_h[n - 1] *= ALPHA**n
    x, history = draw(generator, T, B, INPUT), draw(generator, order, B, H)
    assert_close(run(fofe, x, history), run(plain, x, history), rtol=1e-12, atol=1e-12)


def test_a_learned_alpha_is_the_alpha_that_it_stands_for() -> None:
    """At the given alpha before training, elsewhere where beta is; its gradient is that of finite differences."""
    generator = seeded(10)
    fixed, learned = (
        fill(build(partial(FofeHornn, alpha=0.6, learn_alpha=learns), order=3), generator)
        for learns in (False, True)
    )
    copy_shared_weights(fixed, learned)
    x, state = draw(generator, T, B, INPUT), draw_state(fixed, B, generator)

    def outputs(cell: Any) -> Tensor:
        return scan(cell, x, state)[0]

    with torch.no_grad():
        learned.beta.zero_()
    assert_close(outputs(learned), outputs(fixed), rtol=1e-12, atol=1e-12)
    (slope,) = torch.autograd.grad(outputs(learned).sum(), [learned.beta])
    step = 1e-6
    sums = []
    for beta in (-step, step):
        alpha = float(torch.sigmoid(torch.logit(torch.tensor(0.6, dtype=torch.float64)) + beta))
        moved = fill(build(partial(FofeHornn, alpha=alpha), order=3), generator)
        copy_shared_weights(fixed, moved)
        sums.append(outputs(moved).sum().item())
    assert float(slope) == pytest.approx((sums[1] - sums[0]) / (2 * step), rel=1e-6)


def test_fofe_that_forgets_nothing_is_the_sum() -> None:
    generator = seeded(9)
    fofe = fill(build(partial(FofeHornn, alpha=1 - 1e-12), order=3), generator)
    plain = build(Hornn, order=3).double()
    copy_shared_weights(fofe, plain)
    x, history = draw(generator, T, B, INPUT), draw(generator, 3, B, H)
    assert_close(run(fofe, x, history), run(plain, x, history), rtol=1e-9, atol=1e-9)


def test_gates_without_weights_halve_every_tap() -> None:
    generator = seeded(10)
    gated, plain = fill(build(GatedHornn, order=3), generator), build(Hornn, order=3).double()
    copy_shared_weights(gated, plain)
    with torch.no_grad():
        gated.W_g1.zero_()
        gated.W_g2.zero_()
        plain.W_h /= 2
    x, history = draw(generator, T, B, INPUT), draw(generator, 3, B, H)
    assert_close(run(gated, x, history), run(plain, x, history), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("gate_bias", "tap_weight"), [(1000.0, 1.0), (-1000.0, 0.0)])
def test_gates_open_are_the_sum_and_gates_shut_are_no_feedback(gate_bias: float, tap_weight: float) -> None:
    generator = seeded(11)
    gated = fill(build(GatedHornn, order=3, bias=True), generator)
    plain = build(Hornn, order=3, bias=True).double()
    copy_shared_weights(gated, plain)
    with torch.no_grad():
        gated.b_g.fill_(gate_bias)
        plain.W_h *= tap_weight
    x, history = draw(generator, T, B, INPUT), draw(generator, 3, B, H)
    assert_close(run(gated, x, history), run(plain, x, history), rtol=1e-12, atol=1e-12)


def test_each_gate_belongs_to_its_own_tap() -> None:
    """Tap n alone open, by its own bias, is the sum with only W_hn."""
    order = 3
    for n in range(order):
        generator = seeded(12)
        gated = fill(build(GatedHornn, order, bias=True), generator)
        plain = build(Hornn, order, bias=True).double()
        copy_shared_weights(gated, plain)
        with torch.no_grad():
            gated.b_g.fill_(-1000.0)
            gated.b_g[n] = 1000.0
            plain.W_h[[other for other in range(order) if other != n]] = 0.0
        x, history = draw(generator, T, B, INPUT), draw(generator, order, B, H)
        assert_close(run(gated, x, history), run(plain, x, history), rtol=1e-12, atol=1e-12)


def test_max_of_equal_signals_is_the_simple_rnn() -> None:
    generator = seeded(13)
    cell = fill(build(MaxHornn, order=3), generator)
    with torch.no_grad():
        cell.W_h[1:] = cell.W_h[0]
    x, h = draw(generator, 1, B, INPUT), draw(generator, B, H)
    y, _ = run(cell, x, h.expand(3, B, H).contiguous())
    assert_close(y, simple_rnn(cell.W_in, cell.W_h[0], x, h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_max_takes_the_tap_that_wins_everywhere(winner: int) -> None:
    """Sigmoid states are positive, so a positive matrix beats negative ones at every unit."""
    generator = seeded(14)
    pooled = fill(build(MaxHornn, order=3, activation="sigmoid"), generator)
    plain = build(Hornn, order=3, activation="sigmoid").double()
    with torch.no_grad():
        pooled.W_h.copy_(-pooled.W_h.abs())
        pooled.W_h[winner] *= -1
        copy_shared_weights(pooled, plain)
        plain.W_h[[other for other in range(3) if other != winner]] = 0.0
    x, history = draw(generator, T, B, INPUT), draw(generator, 3, B, H).sigmoid()
    assert_close(run(pooled, x, history), run(plain, x, history), rtol=1e-12, atol=1e-12)


def test_max_counts_the_empty_history_as_zero() -> None:
    """Negative matrices and sigmoid states: until K outputs exist, a zero tap wins, so h_t = f(W_in x_t)."""
    generator = seeded(15)
    order = 3
    cell = fill(build(MaxHornn, order, activation="sigmoid"), generator)
    with torch.no_grad():
        cell.W_h.copy_(-cell.W_h.abs() - 0.1)
    x = draw(generator, T, B, INPUT)
    y, _ = scan(cell, x, cell.initial_state(B))
    without_feedback = (x @ cell.W_in.T).sigmoid()
    assert_close(y[:order], without_feedback[:order], rtol=1e-12, atol=1e-12)
    assert (y[order:] < without_feedback[order:]).all()


def test_max_gives_the_gradient_of_a_tie_to_one_tap() -> None:
    """With equal histories and matrices all taps tie at every unit: one W_hn gets the whole gradient."""
    generator = seeded(16)
    order = 3
    cell = fill(build(MaxHornn, order), generator)
    with torch.no_grad():
        cell.W_h[1:] = cell.W_h[0]
    h = draw(generator, B, H)
    x, dy = draw(generator, 1, B, INPUT), draw(generator, 1, B, H)
    y, _ = run(cell, x, h.expand(order, B, H).contiguous())
    (gradient,) = torch.autograd.grad((y * dy).sum(), [cell.W_h])
    winners = (gradient != 0).any(dim=2).sum(dim=0)
    assert (winners >= 1).all()

    delta = dy[0] * (1 - y[0] ** 2)
    assert_close(gradient.sum(0), delta.T @ h, rtol=1e-12, atol=1e-12)

    # Column by column, so that a tie broken differently in two columns is not mistaken for a shared one.
    for column in range(B):
        y, _ = run(cell, x, h.expand(order, B, H).contiguous())
        (gradient,) = torch.autograd.grad((y[:, column] * dy[:, column]).sum(), [cell.W_h])
        assert ((gradient != 0).any(dim=2).sum(dim=0) == 1).all()


def test_max_gives_the_gradient_of_the_initial_state_to_one_tap() -> None:
    """One unit, all taps tied at zero: a single h_{t-n} receives f'(a) W_hn, the others nothing."""
    cell = fill(MaxHornn(input_size=INPUT, hidden_size=1, order=4, activation="tanh", bias=False), seeded(17))
    state = cell.initial_state(1)
    history = state.history.clone().requires_grad_()
    y, _ = scan(cell, draw(seeded(18), 1, 1, INPUT), type(state)(history))
    (gradient,) = torch.autograd.grad(y.sum(), [history])
    (n,) = gradient.flatten().nonzero().flatten().tolist()
    expected = (1 - y.item() ** 2) * cell.W_h[n].item()
    assert gradient[n].item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", [2, 3, 5, LONGER_THAN_THE_CHUNK])
@pytest.mark.parametrize("pooling", CELLS)
def test_every_tap_learns(pooling: str, order: int) -> None:
    generator = seeded(19)
    cell = fill(build(CELLS[pooling][0], order, bias=True), generator)
    y, _ = run(cell, draw(generator, T, B, INPUT), draw(generator, order, B, H))
    (y * draw(generator, *y.shape)).sum().backward()
    per_tap = {"W_h", "W_g1", "W_g2", "b_g"} & dict(cell.named_parameters()).keys()
    for name in per_tap:
        gradient = cell.get_parameter(name).grad
        for n in range(order):
            assert gradient[n].abs().max() > 0, f"{name}[{n}]"
