"""Kneser-Ney against numbers worked by hand, its transcription, and lmplz on Penn Treebank."""

import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from baselines.zipf import zipf
from hornn.baselines.ngram import KneserNey
from hornn.data.ptb import build_data
from hornn.data.text8 import build_data as build_text8
from reference.ngram import kneser_ney, sentences

FALLBACK = [0.5, 1.0, 1.5]  # lmplz's
NOTHING = np.zeros(0, dtype=np.int64)


def fitted(train: np.ndarray, vocab_size: int, eos_id: int | None, order: int) -> KneserNey:
    model = KneserNey(vocab_size, eos_id, order, FALLBACK)
    model.fit(train, NOTHING)
    return model


def test_bigrams_of_a_toy_corpus_worked_by_hand() -> None:
    """`a b </s> a c </s>`, V = 5 with a word d that does not occur, D = 0.5, 1, 1.5.

    Order 1: adjusted counts a 1, b 1, c 1, </s> 2 (after b and c), their sum 5, the mass left 3 x 0.5 + 1 = 2.5, so
    that each word gets 2.5 / 5 / 5 = 0.1: p(a) = p(b) = p(c) = 0.5 / 5 + 0.1, p(</s>) = 1 / 5 + 0.1, p(d) = 0.1.
    Order 2: p(a | <s>) = (2 - 1) / 2 + 1 / 2 x 0.2, p(b | a) = 0.5 / 2 + 1 / 2 x 0.2, p(</s> | b) = 0.5 + 0.5 x 0.3.
    """
    a, b, c, d, end = range(5)
    model = fitted(np.array([a, b, end, a, c, end]), 5, end, order=2)
    scored = model.score(np.array([a, b, end, d, end]))
    np.testing.assert_allclose(np.exp(-scored), [0.6, 0.35, 0.65, 0.5 * 0.1, 0.3], rtol=1e-14)
    np.testing.assert_allclose(model.distribution(np.array([a])), [0.1, 0.35, 0.35, 0.05, 0.15], rtol=1e-14)
    np.testing.assert_allclose(model.distribution(NOTHING), [0.6, 0.1, 0.1, 0.05, 0.15], rtol=1e-14)
    np.testing.assert_allclose(model.distribution(np.array([a, b, end])), model.distribution(NOTHING), rtol=0)
    # order 1: five words and gamma of six contexts; order 2: <s> a, a b, a c, b </s>, c </s>
    assert model.num_parameters == 5 + 6 + 5


def test_discounts_worked_by_hand() -> None:
    """n_1 .. n_4 = 4, 2, 1, 1: Y = 4 / 8; D1 = 1 - 2 / 2 x 2 / 4, D2 = 2 - 3 / 2 x 1 / 2, D3 = 3 - 4 / 2 x 1 / 1."""
    model = KneserNey(9, None, order=1)
    model.fit(np.repeat(np.arange(8), [1, 1, 1, 1, 2, 2, 3, 4]), NOTHING)
    np.testing.assert_allclose(model.discounts, [[0.5, 1.25, 1.0]], rtol=1e-15)
    left = (4 * 0.5 + 2 * 1.25 + 2 * 1.0) / 15
    by_hand = np.array([0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 2, 3, 0]) / 15 + left / 9
    np.testing.assert_allclose(model.distribution(NOTHING), by_hand, rtol=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("eos_id", [2, None])
@pytest.mark.parametrize("last", [2, 5])
@pytest.mark.parametrize("size", [60, 3000])
def test_equals_the_transcription(order: int, eos_id: int | None, last: int, size: int) -> None:
    train, test = zipf(1, size, 40), zipf(2, 120, 50)  # words 40 to 49 are not in the training text
    train[-1] = test[-1] = last
    p = kneser_ney(train.tolist(), eos_id, 50, order, FALLBACK)
    cut = sentences(test.tolist(), eos_id)
    expected = [p(sentence[t], sentence[:t]) for sentence in cut for t in range(1, len(sentence))]
    np.testing.assert_allclose(np.exp(-fitted(train, 50, eos_id, order).score(test)), expected, rtol=1e-11)


def test_falls_back_in_the_orders_that_need_it_alone() -> None:
    text = zipf(3, 6000, 300)
    free = KneserNey(300, 0, order=3)
    free.fit(text, NOTHING)
    np.testing.assert_array_equal(fitted(text, 300, 0, 3).discounts, free.discounts)
    letters = fitted(zipf(3, 6000, 10), 10, 0, order=4).discounts  # each letter follows each other one
    assert letters[0].tolist() == FALLBACK
    assert FALLBACK not in letters[2:].tolist()


def test_a_text_without_discounts_falls_back_and_says_so() -> None:
    model, given = KneserNey(9, 0, order=2), KneserNey(9, 0, order=2, fallback_discounts=FALLBACK)
    for each in (model, given):
        each.fit(np.array([1, 2, 1, 2]), NOTHING)
    assert model.discounts.tolist() == [FALLBACK, FALLBACK]
    np.testing.assert_array_equal(model.discounts, given.discounts)
    assert model.notes == [
        "the training text gives no Kneser-Ney discounts for n-grams of order 1, 2: "
        "the fallback discounts 0.5, 1, 1.5 served"
    ]
    free = KneserNey(300, 0, order=3)
    free.fit(zipf(3, 6000, 300), NOTHING)
    assert free.notes == []


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("eos_id", [0, None])
def test_every_distribution_sums_to_one_and_is_what_scores(order: int, eos_id: int | None) -> None:
    model = fitted(zipf(5, 2000, 60), 70, eos_id, order)
    text = zipf(6, 300, 70)
    scored = np.exp(-model.score(text))
    for t in [*range(8), *np.flatnonzero(text[:250] == 0)[:5] + 1, *range(250, 300)]:
        p = model.distribution(text[:t])
        assert p.shape == (70,)
        assert p.min() > 0
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert scored[t] == pytest.approx(p[text[t]], rel=1e-12)


def test_words_before_the_sentence_and_out_of_reach_do_not_count() -> None:
    model = fitted(zipf(7, 2000, 60), 60, 0, order=3)
    same = [model.distribution(np.array(history)) for history in ([0, 9, 8], [4, 3, 0, 9, 8], [9, 8])]
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_array_equal(same[0], same[2])
    assert not np.array_equal(model.distribution(np.array([0])), model.distribution(np.array([9])))


def test_a_sentence_shorter_than_the_order_and_no_text() -> None:
    model = fitted(np.array([1, 0, 1, 2, 0, 1]), 4, 0, order=5)
    assert np.isfinite(model.score(np.array([3, 2, 1, 3, 2, 1, 0, 0, 3]))).all()
    assert model.score(NOTHING).shape == (0,)


def test_the_state_is_the_model() -> None:
    text = zipf(8, 900, 40)
    model, other = fitted(text, 40, 0, 3), KneserNey(40, 0, order=3)
    state = model.state()
    assert all(
        value.dtype in (np.int64, np.float64) for value in state.values() if isinstance(value, np.ndarray)
    )
    other.load_state(state)
    np.testing.assert_array_equal(other.score(text), model.score(text))
    np.testing.assert_array_equal(other.discounts, model.discounts)
    assert other.num_parameters == model.num_parameters
    with pytest.raises(ValueError, match="model of order 2 has 5 entries, got 8: load it"):
        KneserNey(40, 0, order=2).load_state(state)
    with pytest.raises(ValueError, match="model of order 30,000,000 has 89,999,999 entries, got 8: load it"):
        KneserNey(40, 0, order=30_000_000).load_state(state)  # without memory for each order
    with pytest.raises(ValueError, match="vocabulary of 40 words, the model of 41"):
        KneserNey(41, 0, order=3).load_state(state)
    other = KneserNey(40, 0, order=3)
    for name in ("p_1", "p_2", "p_3", "gamma_2"):
        with pytest.raises(ValueError, match=r"words sum to .*, not to 1: fit the model anew"):
            other.load_state(state | {name: 3 * state[name]})
        with pytest.raises(ValueError, match="no n-grams yet"):
            other.score(text)
    state["keys_2"] = np.append(state["keys_2"][:-1], 41 * 41 - 1)  # `<s>`, which no n-gram ends with
    with pytest.raises(ValueError, match="the n-grams of order 2 are damaged: fit the model anew"):
        KneserNey(40, 0, order=3).load_state(state)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order must be a whole number >= 1, got 0"),
        ({"order": 2.0}, r"got 2\.0"),
        ({"order": True}, "got True"),
        ({"vocab_size": 0}, "vocab_size must be a whole number >= 1, got 0"),
        ({"eos_id": 9}, "eos_id must be from 0 to 8, or None for a text without sentences, got 9"),
        (
            {"fallback_discounts": [0.5, 1.0]},
            r"^model.fallback_discounts must be null or three numbers .*, got \[0\.5, 1\.0\]",
        ),
        ({"fallback_discounts": [0.5, 1.0, 3.5]}, "0 < D_i <= i"),
        ({"fallback_discounts": [0.0, 1.0, 1.5]}, "0 < D_i <= i"),
        ({"fallback_discounts": 0.5}, r"fallback_discounts must be .* got 0\.5"),
        ({"fallback_discounts": ["a", 1, 2]}, r"fallback_discounts must be .* got \['a', 1, 2\]"),
    ],
)
def test_impossible_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KneserNey(**({"vocab_size": 9, "eos_id": 0} | arguments))  # type: ignore[arg-type]


def test_impossible_texts() -> None:
    model = KneserNey(9, 0, order=2)
    with pytest.raises(ValueError, match="no n-grams yet: call fit"):
        model.score(np.array([1]))
    with pytest.raises(ValueError, match="holds no tokens"):
        model.fit(NOTHING, NOTHING)
    with pytest.raises(ValueError, match="from 1 to 9; the vocabulary has 0 to 8"):
        model.fit(np.array([1, 9]), NOTHING)
    with pytest.raises(ValueError, match="vector of whole numbers, got float64"):
        model.fit(np.array([1.0, 2.0]), NOTHING)


@pytest.mark.corpus
def test_penn_treebank_as_lmplz(corpus_root: Callable[[str], str], tmp_path: Path) -> None:
    """Perplexity 141.19 by lmplz -o 5; published as 141 (Soltani & Jiang 2016, table 2)."""
    data = build_data(root=corpus_root("ptb/ptb.train.txt"), cache_dir=str(tmp_path))
    data.prepare_data()
    data.setup()
    model = KneserNey(len(data.vocabulary), data.vocabulary.eos_id, order=5)
    model.fit(data.tokens("train"), data.tokens("valid"))
    test = np.asarray(data.tokens("test"))
    scored = model.score(test)
    assert np.exp(scored.mean()) == pytest.approx(141.19, abs=0.01)
    for t in np.random.default_rng(0).choice(len(test), 20):
        assert model.distribution(test[:t]).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.slow
@pytest.mark.thorough
def test_penn_treebank_equals_the_transcription(corpus_root: Callable[[str], str], tmp_path: Path) -> None:
    """All of its test text, word by word, by dictionaries."""
    data = build_data(root=corpus_root("ptb/ptb.train.txt"), cache_dir=str(tmp_path))
    data.prepare_data()
    data.setup()
    train, test = (np.asarray(data.tokens(split)) for split in ("train", "test"))
    model = KneserNey(len(data.vocabulary), data.vocabulary.eos_id, order=5)
    model.fit(train, train[:0])
    p = kneser_ney(train.tolist(), data.vocabulary.eos_id, len(data.vocabulary), 5)
    cut = sentences(test.tolist(), data.vocabulary.eos_id)
    slow = [p(sentence[t], sentence[:t]) for sentence in cut for t in range(1, len(sentence))]
    np.testing.assert_allclose(np.exp(-model.score(test)), slow, rtol=1e-10)


WORDS = 17_000_000 // 4  # of text8, a quarter


def fit_and_weigh(text: np.ndarray, vocab_size: int) -> tuple[float, float]:
    """By how many bytes the peak memory of this process rises, and the perplexity of the text's last words."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = fitted(text, vocab_size, None, order=5)
    ppl = float(np.exp(model.score(text[-1000:]).mean()))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024.0, ppl


def independent_words() -> tuple[np.ndarray, int]:
    """No n-gram comes back more often than chance has it: the hardest case."""
    return zipf(9, WORDS, 44_000).astype(np.uint16), 44_000


def repeated_head(root: str, cache_dir: Path) -> tuple[np.ndarray, int]:
    """The head of text8 over and over, every fifth word replaced by another of its words."""
    data = build_text8(root=root, cache_dir=str(cache_dir), variant="head", min_count=2)
    data.prepare_data()
    data.setup()
    head = np.asarray(data.tokens("train"))
    text = np.tile(head, -(-WORDS // len(head)))[:WORDS]
    places = np.random.default_rng(9).choice(WORDS, WORDS // 5, replace=False)
    text[places] = text[np.random.default_rng(8).permutation(places)]
    return text, len(data.vocabulary)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("source", ["independent", "head"])
def test_a_text_of_the_size_of_text8_fits(
    source: str, corpus_root: Callable[[str], str], tmp_path: Path
) -> None:
    """In 4 GiB, half of one for the program: memory grows with the text, of which a quarter is fitted here."""
    if source == "head":
        text, vocab_size = repeated_head(corpus_root("text8/text8.head"), tmp_path)
    else:
        text, vocab_size = independent_words()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
        memory, ppl = apart.submit(fit_and_weigh, text, vocab_size).result()
    assert memory < (4 - 0.5) / 4 * 2**30
    assert 1 < ppl < vocab_size


def test_keys_may_be_beyond_32_bits() -> None:
    text = np.random.default_rng(0).integers(60_000, size=60_000)
    model = KneserNey(60_000, None, order=3)
    model.fit(text, text)
    keys = model.levels[-1].keys
    assert keys[-1] > 2**31
    assert (np.diff(keys) > 0).all()
    assert np.exp(-model.score(text)).max() <= 1


def test_notes_are_of_the_text_that_was_fitted_last() -> None:
    model = KneserNey(3, 0, order=2)
    texts = [np.array([1, 2, 0]), np.array([1, 2, 0])]
    notes = []
    for text in texts:
        model.fit(text, text)
        notes.append(model.notes)
    assert notes[0] == notes[1] != []
