"""The clockwork network against its transcription, its clock, and its limit."""

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.clockwork import Clockwork
from hornn.cells.elman import Rnn
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import draw, fill, seeded
from reference.clockwork import clockwork

T, B, INPUT, H = 11, 3, 4, 12


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("periods", [(1,), (1, 2, 4), (2, 3, 5), (1, 3, 20)], ids=str)
@pytest.mark.parametrize("t_before", [0, 5])
def test_equals_the_transcription(
    periods: tuple[int, ...], activation: str, bias: bool, t_before: int
) -> None:
    generator = seeded(1)
    cell = fill(Clockwork(INPUT, H, periods, activation, bias), generator)
    x, h = draw(generator, T, B, INPUT), draw(generator, B, H)
    phase = torch.tensor([t_before % period for period in periods], dtype=torch.float64).expand(B, -1)
    y, last = scan(cell, x, type(cell.initial_state(B))(h, phase))
    W_h = [W.detach().numpy() for W in cell.W_h]
    b = cell.b.detach().numpy() if bias else None
    f, W_in = ACTIVATIONS[activation], cell.W_in.detach().numpy()
    expected_y, expected_h = clockwork(x.numpy(), h.numpy(), t_before, f, periods, W_in, W_h, b)
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(last.h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)
    for i, period in enumerate(periods):
        assert (last.phase[:, i] == (t_before + T) % period).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_clock_stays_exact_over_a_long_text(dtype: torch.dtype) -> None:
    periods = (1, 3, 8)
    cell = Clockwork(1, 3, periods).to(dtype)
    with torch.inference_mode():
        state = cell.initial_state(1)
        for _ in range(1003):
            _, state = cell.step(cell.project_input(torch.zeros(1, 1, 1, dtype=dtype))[0], state)
    assert state.phase.tolist() == [[1003 % period for period in periods]]


def test_a_slow_module_is_deaf_to_faster_ones_and_idle_between_its_steps() -> None:
    generator = seeded(2)
    cell = fill(Clockwork(INPUT, H, (1, 4)), generator)
    x, state = draw(generator, T, B, INPUT), cell.initial_state(B)
    y, _ = scan(cell, x, state)
    other, _ = scan(
        cell, x, state._replace(h=torch.cat([draw(generator, B, H // 2), state.h[:, H // 2 :]], 1))
    )
    assert (other[..., : H // 2] != y[..., : H // 2]).any()
    slow = y[..., H // 2 :]
    assert_close(other[..., H // 2 :], slow, rtol=0, atol=0)
    for t in range(1, T):
        assert torch.equal(slow[t], slow[t - 1]) == (t % 4 != 0)


def test_one_period_of_one_step_is_the_rnn() -> None:
    generator = seeded(3)
    cell = fill(Clockwork(INPUT, H, (1,), bias=True), generator)
    rnn = Rnn(INPUT, H, bias=True).double()
    rnn.load_state_dict({"W_in": cell.W_in, "W_h": cell.W_h[0], "b": cell.b})
    x = draw(generator, T, B, INPUT)
    y, _ = scan(cell, x, cell.initial_state(B))
    assert_close(y, scan(rnn, x, rnn.initial_state(B))[0], rtol=1e-12, atol=1e-12)


def test_counts_the_blocks_of_the_triangle_alone() -> None:
    cell = Clockwork(400, 400)
    assert sum(p.numel() for p in cell.parameters()) == 400 * 400 + 100 * 100 * (4 + 3 + 2 + 1)


@pytest.mark.parametrize("periods", [(), (0, 1), (1, 1), (2, 1), (1, 2.0), (True, 2)], ids=str)
def test_refuses_periods_that_do_not_rise(periods: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="periods must be strictly rising integers >= 1"):
        Clockwork(INPUT, H, periods)


def test_refuses_modules_of_unequal_size() -> None:
    with pytest.raises(ValueError, match=r"hidden_size must be a multiple of 4, .* got 10"):
        Clockwork(INPUT, 10, (1, 2, 4, 8))
