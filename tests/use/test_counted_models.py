"""Models of counts by hand: mixtures of words in another order, and continuations that know nothing of one another."""

import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hornn
from hornn.baselines.ngram import KneserNey
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule
from hornn.use.figures import as_json, figures_of_text, require_probabilities, warn_of_unknown
from hornn.use.model import Model
from hornn.use.scorers import CountScorer, Mixture


def counted(text: str, order: int = 2) -> CountScorer:
    """The n-grams of a text."""
    tokenizer = Tokenizer("word", eos=True)
    tokens = [token for line in text.splitlines() for token in tokenizer.tokens(line)]
    vocabulary = VocabularyRule().build(Counter(tokens))
    counts = KneserNey(len(vocabulary), vocabulary.eos_id, order=order)
    counts.fit(np.array(vocabulary.encode(tokens)), np.zeros(0, dtype=int))
    return CountScorer(text, counts, vocabulary, tokenizer, None)


@pytest.mark.parametrize("text", ["a b c", "c c a b a"])
def test_models_of_a_mixture_may_have_their_words_in_another_order(text: str) -> None:
    scorers = [counted("a a a a b b\na c c\n"), counted("c c c c b b\nb b a a c\n")]
    one, other = map(Model, scorers)
    assert one.words != other.words
    mixture = Model(Mixture(scorers))
    mixture.scorer.weights = np.array([0.3, 0.7])
    p, q, found = (np.exp(model.score([text], True)[0].token_log_probs) for model in (one, other, mixture))
    assert found == pytest.approx(0.3 * p + 0.7 * q)
    assert mixture.perplexity(text + "\n") == pytest.approx(math.exp(-np.log(found).mean()))
    first, second, mixed = (dict(model.next_words(text, k=9)) for model in (one, other, mixture))
    assert mixed == pytest.approx({word: 0.3 * first[word] + 0.7 * second[word] for word in first})


def test_each_continuation_is_another() -> None:
    model = Model(counted("a b c b a c b\nb c a a b\n"))
    assert len(set(model.generate(length=30, temperature=1, num_samples=3))) == 3


def test_each_continuation_reads_the_prompt_alone() -> None:
    model = Model(counted("b b d\nb c\nb c\nb c\n", order=3))
    assert model.next_words("b", k=1)[0][0] == "c"
    assert model.next_words("b b", k=1)[0][0] == "d"
    assert model.generate("b", length=1, temperature=0, num_samples=2) == ["b c", "b c"]


def test_a_text_in_which_ends_of_lines_were_written_is_continued_with_them() -> None:
    words = ["a", "<eos>", "b", "<eos>", "a", "<eos>"]
    vocabulary = VocabularyRule().build(Counter(words))
    counts = KneserNey(len(vocabulary), None, order=1)
    counts.fit(np.array(vocabulary.encode(words)), np.zeros(0, dtype=int))
    model = Model(CountScorer("words", counts, vocabulary, Tokenizer("word", eos=False), None))
    assert "\n" in model.generate(length=100, temperature=1)[0]


def test_the_first_model_that_knows_its_corpus_speaks_for_a_mixture() -> None:
    """As a network behind an ARPA file, which says nothing of its texts."""
    vocabulary = VocabularyRule().build(Counter("ab"))
    counts = KneserNey(len(vocabulary), vocabulary.eos_id, order=1)
    counts.fit(np.array(vocabulary.encode("ab")), np.zeros(0, dtype=int))
    arpa = CountScorer("arpa", counts, vocabulary, Tokenizer("word", eos=True), None)
    known = CountScorer("known", counts, vocabulary, Tokenizer("char", eos=True), {"of": "a corpus"})
    mixture = Mixture([arpa, known])
    assert (mixture.name, mixture.card, mixture.tokenizer.unit) == ("known", {"of": "a corpus"}, "char")


def test_a_text_that_is_certain_has_a_score() -> None:
    require_probabilities(0.0, "a model")
    with pytest.raises(ValueError, match="a model gives probabilities above 1"):
        require_probabilities(-0.1, "a model")


def test_a_text_of_unknown_tokens_alone_has_no_perplexity_of_known_ones() -> None:
    assert "perplexity_known" not in figures_of_text(3.0, 0.0, 2, 2, "word")


def test_as_many_unknown_words_as_training_showed_twice_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    def warn(unknown: int, counts: Counter[str], min_count: int) -> str:
        vocabulary = VocabularyRule(min_count=min_count).build(counts)
        warn_of_unknown(figures_of_text(300.0, 200.0, 100, unknown, "word"), vocabulary)
        return capsys.readouterr().err

    assert warn(5, Counter("ab"), 1) == ""
    assert warn(6, Counter("ab"), 1).startswith(
        "warning: 6.0 % of the tokens are unknown, and read as one word"
    )
    tenth = Counter("aaaaaaaaab")
    assert warn(20, tenth, 2) == ""
    assert "perplexity known is of all others" in warn(21, tenth, 2)


def test_a_record_has_each_character_itself_where_the_output_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, text in (("utf-8", "\u2603"), ("latin-1", "\\u2603")):
        monkeypatch.setattr("sys.stdout", SimpleNamespace(encoding=encoding))
        assert as_json({"text": "\u2603"}) == f'{{"text": "{text}"}}'


def test_how_a_network_reads_is_nothing_for_counts(command: Any, folder: Path) -> None:
    for word in ("batch_size=2", "seq_len=7"):
        done = command("evaluate", f"checkpoint={folder / 'counts/best.ckpt'}", word)
        assert "batch_size= and seq_len= say how a network reads, and" in done.err


def test_a_model_is_loaded_once(folder: Path) -> None:
    with pytest.raises(ValueError, match="load names a model twice: name each once"):
        hornn.load([folder / "kn.arpa", folder / "counts" / ".." / "kn.arpa"])


def test_models_of_words_and_of_characters_are_not_mixed() -> None:
    def counted(text: str, unit: str) -> CountScorer:
        vocabulary = VocabularyRule().build(Counter(text.split()))
        counts = KneserNey(len(vocabulary), vocabulary.eos_id, order=1)
        return CountScorer(unit, counts, vocabulary, Tokenizer(unit, eos=True), None)

    with pytest.raises(
        ValueError, match="word reads words, and char reads characters: mix models that read alike"
    ):
        Mixture([counted("ab cd", "word"), counted("a b c d", "char")])
