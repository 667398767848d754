"""FOFE-FNN against its transcription from one-hot words, and in its limits."""

import math

import pytest
import torch
from torch.testing import assert_close

from hornn.baselines.fofe_fnn import FofeFnn
from hornn.baselines.nnlm import Nnlm
from hornn.scan import scan
from reference.activations import ACTIVATIONS
from reference.cases import draw, draw_state, fill, seeded
from reference.fofe_fnn import fofe_fnn

T, B, INPUT, H, V = 9, 3, 4, 6, 11


@pytest.mark.parametrize(("order", "num_hidden"), [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("learn_alpha", [False, True])
@pytest.mark.parametrize("backend", ["eager", "parallel"])
def test_it_equals_the_transcription(order: int, num_hidden: int, learn_alpha: bool, backend: str) -> None:
    """From the start of a text, whose words the transcription encodes one-hot, and projects afterwards."""
    generator = seeded(1)
    cell = fill(FofeFnn(INPUT, H, order, 0.6, learn_alpha, num_hidden), generator)
    alpha = 0.6
    if cell.beta is not None:
        alpha = 1 / (1 + math.exp(-math.log(0.6 / 0.4) - float(cell.beta.detach())))
    words, E = torch.randint(V, (T, B), generator=generator), draw(generator, V, INPUT)
    y, _ = scan(cell, E[words], cell.initial_state(B), None, backend)
    W, b = ([p.detach().numpy() for p in parameters] for parameters in (cell.W, cell.b))
    for column in range(B):
        expected = fofe_fnn(
            words[:, column].tolist(), E.numpy(), ACTIVATIONS["relu"], W, b, alpha=alpha, order=order
        )
        assert_close(y[:, column], torch.from_numpy(expected), rtol=1e-12, atol=1e-12)


def test_with_all_forgotten_it_sees_one_word() -> None:
    """alpha -> 0 and one hidden layer: the feed-forward model of 2-grams, of 3-grams for order 2."""
    for order in (1, 2):
        cell = fill(FofeFnn(INPUT, H, order, alpha=1e-200, num_hidden=1), seeded(0))
        bigrams = Nnlm(INPUT, H, order + 1, "relu").double()
        bigrams.load_state_dict({"H": cell.W[0].detach(), "d": cell.b[0].detach()})
        x = draw(seeded(1), T, B, INPUT)
        for backend in ("eager", "parallel"):
            y, _ = scan(cell, x, cell.initial_state(B), None, backend)
            assert_close(y, scan(bigrams, x, bigrams.initial_state(B))[0], rtol=1e-12, atol=1e-12)


def test_a_learned_alpha_starts_at_the_given_one_and_learns() -> None:
    fixed, learned = (
        fill(FofeFnn(INPUT, H, alpha=0.8, learn_alpha=learns), seeded(0)) for learns in (False, True)
    )
    learned.load_state_dict({**fixed.state_dict(), "beta": torch.zeros(1)})
    x, state = draw(seeded(1), T, B, INPUT), draw_state(fixed, B, seeded(2))
    y, _ = scan(learned, x, state)
    assert_close(y, scan(fixed, x, state)[0], rtol=1e-12, atol=1e-12)
    y.square().sum().backward()
    assert learned.beta is not None
    assert learned.beta.grad is not None
    assert learned.beta.grad.abs() > 0


def test_a_code_that_fades_for_a_long_time_stays_finite() -> None:
    cell = FofeFnn(INPUT, H, alpha=0.05, learn_alpha=True)
    y, last = scan(cell, torch.randn(700, 1, INPUT), cell.initial_state(1), None, "parallel")
    assert y.isfinite().all()
    assert last.codes.isfinite().all()
    gradients = torch.autograd.grad(y.sum(), list(cell.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
