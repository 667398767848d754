"""Linear interpolation: its weights against a search, its likelihood against EM's promises."""

import numpy as np
import pytest

from hornn.baselines import mixture
from hornn.baselines.mixture import em_weights, interpolate


def draw(seed: int, tokens: int, models: int) -> np.ndarray:
    """ln P of tokens of which each model knows some better than the others do."""
    return np.log(np.random.default_rng(seed).beta(0.3, 3.0, size=(tokens, models)))


def test_two_weights_are_those_of_a_search() -> None:
    log_p = draw(0, 500, 2)
    (first, second) = em_weights(log_p)
    candidates = np.linspace(0, 1, 20_001)[1:-1]
    nats = [np.log(w * np.exp(log_p[:, 0]) + (1 - w) * np.exp(log_p[:, 1])).mean() for w in candidates]
    assert first + second == pytest.approx(1, abs=1e-15)
    assert first == pytest.approx(candidates[int(np.argmax(nats))], abs=1e-4)
    assert interpolate(log_p, np.array([first, second])).mean() >= max(nats) - mixture.GAIN


def test_at_the_maximum_no_model_deserves_more() -> None:
    """Kuhn-Tucker: the mean of P_k / P is 1 where w_k > 0, and at most 1 elsewhere."""
    log_p = draw(1, 400, 5) - np.arange(5)
    weights = em_weights(log_p)
    mixed = interpolate(log_p, weights)
    deserved = np.exp(log_p - mixed[:, None]).mean(axis=0)
    assert deserved.max() <= 1 + 2e-9
    np.testing.assert_allclose(deserved[weights > 1e-3], 1, atol=1e-6)


def test_no_step_lowers_the_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    log_p = draw(2, 300, 4) - np.arange(4)  # each worse than the one before
    found = []
    for steps in range(40):
        monkeypatch.setattr(mixture, "STEPS", steps)
        found.append(interpolate(log_p, em_weights(log_p)).sum())
    assert (np.diff(found) >= -1e-10).all()
    assert found[-1] > found[0] + 1


def test_the_weight_of_a_model_that_is_never_better_goes_to_0() -> None:
    log_p = draw(3, 200, 1)
    np.testing.assert_allclose(em_weights(np.hstack([log_p, log_p - 1])), [1, 0], atol=1e-6)
    np.testing.assert_allclose(em_weights(np.hstack([log_p, log_p])), [0.5, 0.5])
    np.testing.assert_array_equal(em_weights(log_p), [1])


def test_probabilities_that_no_float_holds() -> None:
    log_p = draw(4, 200, 3) - 5000.0
    np.testing.assert_allclose(em_weights(log_p), em_weights(log_p + 5000), rtol=1e-10)
    assert np.isfinite(interpolate(log_p, em_weights(log_p))).all()


def test_a_word_that_one_model_lacks() -> None:
    log_p = np.log([[0.5, 0.1], [0.25, 0.4]])
    log_p[0, 1] = -np.inf
    expected = [np.log(0.7 * 0.5), np.log(0.7 * 0.25 + 0.3 * 0.4)]
    np.testing.assert_allclose(interpolate(log_p, np.array([0.7, 0.3])), expected)
    np.testing.assert_allclose(interpolate(log_p, np.array([1.0, 0.0])), log_p[:, 0])


@pytest.mark.parametrize(
    ("log_p", "message"),
    [
        (np.zeros((0, 2)), "N >= 1 tokens under K >= 1 models, got shape \\(0, 2\\)"),
        (np.zeros((2, 0)), "got shape \\(2, 0\\)"),
        (np.zeros(3), "got shape \\(3,\\)"),
        (
            np.array([[0.0, -1.0], [-np.inf, -np.inf]]),
            "token 2 of the held-out text has ln P \\[-inf, -inf\\]",
        ),
        (np.array([[np.nan, -1.0]]), "token 1 of the held-out text"),
    ],
)
def test_refuses(log_p: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        em_weights(log_p)
