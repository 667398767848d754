"""Equals in n-best lists, weights from several starts, the limits of `top_p`, ends of lines in a text without them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hornn.baselines.ngram import KneserNey
from hornn.data.music import MusicData
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule
from hornn.use import music, nbest
from hornn.use.figures import figures_of_text, require_probabilities
from hornn.use.model import Model
from hornn.use.nbest import WEIGHTS, best, find_weights, upper_envelope
from hornn.use.scorers import CountScorer, Mixture
from hornn.use.scoring import keep_likeliest, sample


def test_of_equal_hypotheses_the_first_is_best_and_on_top() -> None:
    rows = np.array([[-2.0, 0, 0, 1], [-1, 0, 0, 1], [-1, 0, 0, 1]])
    assert best(rows, dict.fromkeys(WEIGHTS, 1.0)) == 1
    assert list(upper_envelope(rows[:, 0], rows[:, 1])) == [(-np.inf, 1)]


def test_the_best_of_all_starts_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def descend(
        tables: Sequence[np.ndarray],
        errors: Sequence[np.ndarray],
        weights: Mapping[str, float],
        free: Sequence[str],
    ) -> tuple[int, dict[str, float]]:
        begun.append(weights["lm_weight"])
        return (3 if weights["lm_weight"] == 1 else 5), dict(weights)

    monkeypatch.setattr(nbest, "descend", descend)
    assert find_weights([], [], {})["lm_weight"] == 1
    assert begun == [0.1, 1, 10]


def test_weights_are_moved_until_none_brings_fewer_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first weight helps only once the last one was moved."""

    def along(
        tables: Sequence[np.ndarray], errors: Sequence[np.ndarray], weights: Mapping[str, float], name: str
    ) -> float:
        return 2.0 if name == "word_penalty" or weights["word_penalty"] == 2 else weights[name]

    def total_errors(
        tables: Sequence[np.ndarray], errors: Sequence[np.ndarray], weights: Mapping[str, float]
    ) -> int:
        return 9 - int(sum(weights[name] == 2 for name in WEIGHTS))

    monkeypatch.setattr(nbest, "along", along)
    monkeypatch.setattr(nbest, "total_errors", total_errors)
    assert nbest.descend([], [], dict.fromkeys(WEIGHTS, 0.0), WEIGHTS) == (6, dict.fromkeys(WEIGHTS, 2.0))


def test_the_fewest_tokens_that_reach_top_p_are_kept() -> None:
    p = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    assert keep_likeliest(p, None, 0.5).tolist() == [0, 0.5, 0]
    assert keep_likeliest(p, None, 1.0).tolist() == p.tolist()


def test_top_p_may_be_1() -> None:
    log_p = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
    generator = torch.Generator().manual_seed(0)
    assert set(sample(lambda ids: log_p, [], 50, 1.0, generator, top_p=1)) == {0, 1}


def test_a_text_in_which_ends_of_lines_were_written_is_continued_with_them() -> None:
    words = ["a", "<eos>", "b", "<eos>", "a", "<eos>"]
    vocabulary = VocabularyRule().build(Counter(words))
    counts = KneserNey(len(vocabulary), None, order=1)
    counts.fit(np.array(vocabulary.encode(words)), np.zeros(0, dtype=int))
    model = Model(CountScorer("words", counts, vocabulary, Tokenizer("word", eos=False), None))
    assert "\n" in model.generate(length=100, temperature=1)[0]


def test_a_text_that_is_certain_has_a_score() -> None:
    require_probabilities(0.0, "a model")
    with pytest.raises(ValueError, match="a model gives probabilities above 1"):
        require_probabilities(-0.1, "a model")


def test_the_first_model_that_knows_its_corpus_speaks_for_a_mixture() -> None:
    """As a network behind an ARPA file, which says nothing of its texts."""
    vocabulary = VocabularyRule().build(Counter("ab"))
    counts = KneserNey(len(vocabulary), vocabulary.eos_id, order=1)
    counts.fit(np.array(vocabulary.encode("ab")), np.zeros(0, dtype=int))
    arpa = CountScorer("arpa", counts, vocabulary, Tokenizer("word", eos=True), None)
    known = CountScorer("known", counts, vocabulary, Tokenizer("char", eos=True), {"of": "a corpus"})
    mixture = Mixture([arpa, known])
    assert (mixture.name, mixture.card, mixture.tokenizer.unit) == ("known", {"of": "a corpus"}, "char")


def test_pieces_are_counted_from_1(monkeypatch: pytest.MonkeyPatch) -> None:
    data = object.__new__(
        type(
            "Songs",
            (MusicData,),
            {"whole": lambda *_: ["first", "second"], "prepare_data": None, "setup": None},
        )
    )
    monkeypatch.setattr(music, "open_data", lambda *_: data)
    scorer: Any = SimpleNamespace(name="mine")
    found = [music.piece_of(scorer, SimpleNamespace(data=None, piece=piece), []) for piece in (1, 2)]  # type: ignore[arg-type]
    assert found == ["first", "second"]
    for piece in (0, 3):
        with pytest.raises(ValueError, match=f"piece must be from 1 to 2, got {piece}"):
            music.piece_of(scorer, SimpleNamespace(data=None, piece=piece), [])  # type: ignore[arg-type]


def test_a_text_of_unknown_tokens_alone_has_no_perplexity_of_known_ones() -> None:
    assert "perplexity_known" not in figures_of_text(3.0, 0.0, 2, 2, "word")
