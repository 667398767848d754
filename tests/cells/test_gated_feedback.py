"""The gated-feedback network against its transcription and its limits."""

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.gated_feedback import GatedFeedbackRnn
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import as_arrays, draw, draw_state, fill, seeded
from reference.gated_feedback import gated_feedback_rnn

T, B, INPUT, H = 6, 3, 4, 5


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_equals_the_transcription(depth: int, activation: str, bias: bool) -> None:
    generator = seeded(1)
    cell = fill(GatedFeedbackRnn(INPUT, H, depth, activation, bias), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, (h,) = scan(cell, x, state)
    weights = [as_arrays(cell.W_in), as_arrays(cell.W_g1), *as_arrays([cell.W_h, cell.W_g2])]
    expected_y, (expected_h,) = gated_feedback_rnn(
        x.numpy(),
        as_arrays(state),
        ACTIVATIONS[activation],
        *weights,
        b=cell.b.detach().numpy() if bias else None,
    )
    assert_close(y, torch.from_numpy(expected_y), rtol=1e-12, atol=1e-12)
    assert_close(h, torch.from_numpy(expected_h), rtol=1e-12, atol=1e-12)


def test_with_half_open_gates_and_feedback_from_the_own_layer_is_a_stack_of_rnns() -> None:
    generator = seeded(2)
    cell = fill(GatedFeedbackRnn(INPUT, H, depth=2), generator)
    with torch.no_grad():
        for W in (*cell.W_g1, cell.W_g2, cell.W_h[0, 1], cell.W_h[1, 0]):
            W.zero_()
    x = draw(generator, T, B, INPUT)
    expected = x
    for layer, width in enumerate([INPUT, H]):
        rnn = Rnn(width, H).double()
        rnn.load_state_dict({"W_in": cell.W_in[layer], "W_h": cell.W_h[layer, layer] / 2})
        expected, _ = scan(rnn, expected, rnn.initial_state(B))
    y, _ = scan(cell, x, cell.initial_state(B))
    assert_close(y, expected, rtol=1e-12, atol=1e-12)


def test_counts_full_feedback_and_one_gate_for_each_pair_of_layers() -> None:
    cell = GatedFeedbackRnn(INPUT, H, depth=3)
    feedback, gates = 3 * 3 * H * H, 3 * (INPUT + H + H) + 3 * 3 * 3 * H
    assert sum(p.numel() for p in cell.parameters()) == H * INPUT + 2 * H * H + feedback + gates
