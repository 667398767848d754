"""The unigram cache against a count of its window, and Kneser-Ney with it against its two parts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hornn.baselines.cache import KneserNeyCache, cache_distribution, cache_scores
from hornn.baselines.mixture import em_weights, interpolate
from hornn.baselines.ngram import KneserNey
from hornn.data.ptb import build_data

V, EOS = 12, 3
FALLBACK = [0.5, 1.0, 1.5]


def draw(seed: int, size: int) -> np.ndarray:
    """A text whose words come in spells, so that a cache is of use."""
    source = np.random.default_rng(seed)
    return (source.integers(V // 2, size=size) + (np.arange(size) // 40 % 3) * 3) % V


@pytest.mark.parametrize("length", [1, 2, 7, 50, 1000])
def test_scores_are_shares_of_the_window(length: int) -> None:
    ids = draw(0, 200)
    expected = [1 / V]
    for t in range(1, len(ids)):
        window = ids[max(0, t - length) : t]
        expected.append(float((window == ids[t]).mean()))
    np.testing.assert_allclose(np.exp(cache_scores(ids, length, V)), expected, rtol=1e-14)


@pytest.mark.parametrize("length", [1, 5, 300])
def test_the_distribution_is_what_scores_say(length: int) -> None:
    ids = draw(1, 60)
    scores = cache_scores(ids, length, V)
    for t in range(len(ids)):
        p = cache_distribution(ids[:t], length, V)
        assert p.sum() == pytest.approx(1, abs=1e-14)
        assert p[ids[t]] == pytest.approx(np.exp(scores[t]), abs=1e-15)


def test_small_types_do_not_overflow() -> None:
    ids = np.arange(60_000, dtype=np.uint16) % 60_000
    ids[1::2] = 59_999
    assert np.exp(cache_scores(ids, 100, 60_000))[1001] == pytest.approx(0.5)


def test_a_text_by_hand() -> None:
    """Windows before each word: none, 1, 1 1, 1 2."""
    scores = cache_scores(np.array([1, 1, 2, 1]), 2, 4)
    np.testing.assert_allclose(np.exp(scores), [1 / 4, 1, 0, 1 / 2], rtol=1e-14)


def test_an_empty_text() -> None:
    assert cache_scores(np.zeros(0, dtype=np.int64), 5, V).shape == (0,)


def fitted(**arguments: Any) -> KneserNeyCache:
    model = KneserNeyCache(V, EOS, order=3, fallback_discounts=FALLBACK, **arguments)
    model.fit(draw(2, 3000), draw(3, 500))
    return model


def parts(lengths: list[int], ids: np.ndarray) -> np.ndarray:
    ngram = KneserNey(V, EOS, 3, FALLBACK)
    ngram.fit(draw(2, 3000), ids)
    return np.stack([-ngram.score(ids), *(cache_scores(ids, length, V) for length in lengths)], axis=1)


def test_one_length_is_chosen_on_validation() -> None:
    lengths = [5, 20, 60, 400]
    model = fitted(lengths=lengths)
    nats = {}
    for length in lengths:
        log_p = parts([length], draw(3, 500))
        nats[length] = interpolate(log_p, em_weights(log_p)).sum()
    best = max(nats, key=lambda length: nats[length])
    assert [length for length, weight in zip(lengths, model.weights[1:], strict=True) if weight] == [best]
    test = draw(4, 300)
    weights = em_weights(parts([best], draw(3, 500)))
    np.testing.assert_allclose(model.score(test), -interpolate(parts([best], test), weights), rtol=1e-12)
    np.testing.assert_array_equal(fitted(lengths=[best]).score(test), model.score(test))


def test_lengths_are_combined_on_demand() -> None:
    lengths, test = [5, 20, 60], draw(4, 300)
    model = fitted(lengths=lengths, combine=True)
    weights = em_weights(parts(lengths, draw(3, 500)))
    np.testing.assert_allclose(model.weights, weights)
    np.testing.assert_allclose(model.score(test), -interpolate(parts(lengths, test), weights), rtol=1e-12)
    assert model.score(draw(3, 500)).sum() <= fitted(lengths=lengths).score(draw(3, 500)).sum()


@pytest.mark.parametrize("combine", [False, True])
def test_distributions_sum_to_1_and_are_what_scores_say(combine: bool) -> None:
    model, ids = fitted(lengths=[4, 30], combine=combine), draw(5, 50)
    scores = model.score(ids)
    for t in range(len(ids)):
        p = model.distribution(ids[:t])
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert -np.log(p[ids[t]]) == pytest.approx(scores[t], rel=1e-10)


def test_a_state_makes_the_same_model_again() -> None:
    model = fitted(lengths=[4, 30], combine=True)
    again = KneserNeyCache(V, EOS, 3, FALLBACK, [4, 30], True)
    again.load_state(model.state())
    np.testing.assert_array_equal(again.score(draw(6, 40)), model.score(draw(6, 40)))
    assert again.num_parameters == model.num_parameters == model.ngram.num_parameters + 3
    with pytest.raises(ValueError, match="the state has 3 weights, the model 1 \\+ 1"):
        KneserNeyCache(V, EOS, 3, FALLBACK, [4]).load_state(model.state())


@pytest.mark.parametrize("weights", [[2.0, 2.0, 0.0], [1.5, -0.5, 0.0], ["a"] * 3, [1.0, np.nan, 0.0]])
def test_refuses_weights_that_are_no_shares(weights: list[Any]) -> None:
    state = fitted(lengths=[4, 30]).state() | {"weights": np.array(weights)}
    with pytest.raises(ValueError, match=r"no shares of 1: fit the model anew"):
        KneserNeyCache(V, EOS, 3, FALLBACK, [4, 30]).load_state(state)


@pytest.mark.parametrize("lengths", [0, [], [0], [10, -1], [1.5], [True], "10", 2.0, None, {1: 2}])
def test_refuses_a_length(lengths: Any) -> None:
    with pytest.raises(ValueError, match="lengths must be one whole number of tokens, 1 or more, or a list"):
        KneserNeyCache(V, EOS, lengths=lengths)


def test_refuses_a_length_that_comes_twice() -> None:
    """Two caches of one name: the weights that are shown would not add up to 1."""
    with pytest.raises(
        ValueError, match=r"^lengths names a length twice, got \[200, 50, 200\]: name each once$"
    ):
        KneserNeyCache(V, EOS, lengths=[200, 50, 200])


def test_refuses_to_score_unfitted() -> None:
    with pytest.raises(ValueError, match="not fitted yet: call fit or load_state first"):
        KneserNeyCache(V, EOS).score(draw(0, 5))


@pytest.mark.corpus
def test_penn_treebank(corpus_root: Callable[[str], str], tmp_path: Any) -> None:
    """Published: 125 (Mikolov et al. 2011), without the cache's kind, length and weight."""
    root = corpus_root("ptb/ptb.train.txt")
    data = build_data(root=root, cache_dir=str(tmp_path))
    data.prepare_data()
    data.setup()
    train, valid, test = (data.tokens(split) for split in ("train", "valid", "test"))
    model = KneserNeyCache(len(data.vocabulary), data.vocabulary.eos_id)
    model.fit(train, valid)
    assert dict(zip(model.lengths, model.weights[1:] > 0, strict=True))[200]
    assert np.exp(model.score(test).mean()) == pytest.approx(126.77, abs=0.01)


def test_a_cache_of_one_length_has_two_weights_and_the_notes_of_its_counts() -> None:
    model = KneserNeyCache(4, None, order=1, lengths=[2, 5, 9])
    text = np.array([0, 1, 2, 3, 0, 0, 1, 1, 2])
    model.fit(text, text)
    assert model.num_parameters == model.ngram.num_parameters + 2
    assert model.notes == model.ngram.notes != []
