"""The feed-forward network on spliced frames against its transcription, and with one layer against the NNLM."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hornn.baselines.dnn import Dnn
from hornn.baselines.nnlm import Nnlm
from hornn.contract import check_contract
from hornn.scan import scan
from reference.cases import draw, draw_state, fill, seeded

T, B, INPUT, H, N = 8, 3, 4, 6, 3


@pytest.mark.parametrize("backend", ["eager", "parallel"])
def test_equals_the_transcription(backend: str) -> None:
    generator = seeded(1)
    cell = fill(Dnn(INPUT, H, frames=N, num_hidden=3), generator)
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    y, _ = scan(cell, x, state, None, backend)
    frames = np.concatenate([state.words.numpy(), x.numpy()])
    weights = {name: each.detach().numpy() for name, each in cell.named_parameters()}
    for t in range(T):
        for column in range(B):
            h = np.concatenate([frames[t + N - 1 - lag, column] for lag in range(N)])
            layers = [(weights["H"], weights["d"])]
            layers += [(weights[f"W.{layer}"], weights["b"][layer]) for layer in range(2)]
            for W, b in layers:
                h = 1 / (1 + np.exp(-(W @ h + b)))
            assert_close(y[t, column], torch.from_numpy(h), rtol=1e-12, atol=1e-12)


def test_one_layer_has_no_biases_of_further_ones() -> None:
    check_contract(Dnn(INPUT, H, frames=N, num_hidden=1))


def test_one_layer_is_the_nnlm() -> None:
    generator = seeded(2)
    cell, nnlm = fill(Dnn(INPUT, H, frames=N, num_hidden=1), generator), Nnlm(INPUT, H, N + 1, "sigmoid")
    nnlm.double().load_state_dict({"H": cell.H, "d": cell.d})
    x, state = draw(generator, T, B, INPUT), draw_state(cell, B, generator)
    assert_close(scan(cell, x, state)[0], scan(nnlm, x, state)[0])
