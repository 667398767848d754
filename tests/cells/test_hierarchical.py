"""The hierarchical network against its transcription and its limit."""

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.hierarchical import Hierarchical
from hornn.contract import check_contract
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded, weights_of
from reference.hierarchical import hierarchical

T, B, INPUT, H = 7, 3, 4, 12


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("delays", [(1,), (1, 2, 4), (2, 3), (1, 2, 9)], ids=str)
def test_equals_the_transcription(delays: tuple[int, ...], activation: str, bias: bool) -> None:
    generator = seeded(1)
    cell = fill(Hierarchical(INPUT, H, delays, activation, bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (history,) = scan(cell, x, state)
    expected_y, (expected_history,) = hierarchical(
        x.numpy(), as_arrays(state), ACTIVATIONS[activation], delays, **weights_of(cell)
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(history, torch.from_numpy(expected_history), rtol=1e-12, atol=1e-12)


def test_one_delay_of_one_step_is_the_rnn() -> None:
    generator = seeded(2)
    cell = fill(Hierarchical(INPUT, H, (1,)), generator)
    rnn = Rnn(INPUT, H).double()
    rnn.load_state_dict({"W_in": cell.W_in, "W_h": cell.W_h[0]})
    x = draw(generator, T, B, INPUT)
    y, _ = scan(cell, x, cell.initial_state(B))
    assert_close(y, scan(rnn, x, rnn.initial_state(B))[0], rtol=1e-12, atol=1e-12)


def test_one_level_can_be_trained() -> None:
    """It has no matrix between levels, which would have no gradient."""
    cell = Hierarchical(INPUT, H, (3,))
    check_contract(cell)
    assert {name for name, _ in cell.named_parameters()} == {"W_in", "W_h"}


@pytest.mark.parametrize("delays", [(), (0, 1), (1, 1), (4, 2), (1, 1.5)], ids=str)
def test_refuses_delays_that_do_not_rise(delays: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="delays must be strictly rising integers >= 1"):
        Hierarchical(INPUT, H, delays)


def test_refuses_a_delay_without_bound() -> None:
    with pytest.raises(ValueError, match="delays must be at most"):
        Hierarchical(INPUT, H, delays=(1, 2**63))


def test_refuses_levels_of_unequal_size() -> None:
    with pytest.raises(ValueError, match=r"hidden_size must be a multiple of 2, .* got 5"):
        Hierarchical(INPUT, 5, (1, 2))
