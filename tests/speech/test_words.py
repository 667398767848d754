"""From frames to words: the search, n-best lists, grammars and word errors, on the tones of the tiny corpus."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hornn.baselines.arpa import read_arpa
from hornn.baselines.ngram import KneserNey
from hornn.speech import gmm, graphs
from hornn.speech.corpus import SpeechCorpus, read_corpus
from hornn.speech.features import cepstra, normalise, read_wave
from hornn.speech.grammar import Grammar, estimate_bigram, parse, read_shipped
from hornn.speech.lexicon import Lexicon, make_lexicon, read_lexicon
from hornn.speech.recogniser import SCALES, Recogniser, Word, acoustic_scores, choose_scale, from_plain
from hornn.speech.word_errors import aligned, compare, errors_of
from speech.mixtures import log_densities
from speech.tiny import write_corpus


class Heard:
    """The tiny corpus, the scores that Gaussian mixtures give its utterances, and a recogniser of its words."""

    def __init__(self, folder: Path) -> None:
        self.corpus: SpeechCorpus = read_corpus(write_corpus(folder))
        self.lexicon: Lexicon = read_lexicon(self.corpus.dictionary)
        train = self.corpus.splits["train"]
        self.frames = {split: self.read(split) for split in self.corpus.splits}
        named = {each.id: frames for each, frames in zip(train, self.frames["train"], strict=True)}
        self.gmm = gmm.train(
            named, {each.id: each.words for each in train}, self.lexicon, iterations=10, gaussians=20
        )
        self.recogniser = Recogniser(
            self.lexicon,
            self.gmm.stay,
            {
                "shipped": read_shipped(self.corpus.grammar),
                "bigram": estimate_bigram(self.lexicon, self.said("train"))[0],
            },
        )

    def read(self, split: str) -> list[np.ndarray]:
        return normalise(
            [cepstra(read_wave(each.path)) for each in self.corpus.splits[split]], variance=False
        )

    def said(self, split: str) -> list[tuple[str, ...]]:
        return [each.words for each in self.corpus.splits[split]]

    def scores(self, split: str) -> list[np.ndarray]:
        return [log_densities(self.gmm, frames) for frames in self.frames[split]]


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    return Heard(tmp_path_factory.mktemp("corpus") / "tiny")


def texts(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words]


@pytest.mark.parametrize("grammar", ["shipped", "bigram"])
def test_tones_are_heard_as_their_words(heard: Heard, grammar: str) -> None:
    """By a scale that validation chooses, no more than one of the 11 test words is wrong."""
    scale, rate = choose_scale(heard.recogniser, grammar, heard.scores("valid"), heard.said("valid"))
    found = heard.recogniser.hear(scale, heard.scores("test"), grammar)
    assert rate <= 100 * compare(heard.said("valid"), [["YES"]] * 5).wer
    assert errors_of(heard.said("test"), found).sum() <= 1, found


@pytest.mark.parametrize("seed", range(8))
def test_the_scale_is_the_one_that_a_whole_search_would_find(seed: int) -> None:
    """Errors by chance, so few that scales are often equally good; with none at first a search ends at an error."""
    generator = np.random.default_rng(seed)
    said = [["YES"] * 3] * 6
    wrong = {scale: generator.integers(4, size=6) for scale in SCALES}
    if seed == 0:
        wrong = dict.fromkeys(SCALES, np.full(6, 1)) | {SCALES[-1]: np.zeros(6, dtype=int)}
    searches = []

    def hear(scale: float, scores: Sequence[np.ndarray], grammar: str) -> list[list[str]]:
        searches.append(scale)
        [number] = (int(each[0, 0]) for each in scores)
        return [["NO"] * wrong[scale][number] + ["YES"] * (3 - wrong[scale][number])]

    recogniser: Any = SimpleNamespace(hear=hear)
    found = choose_scale(recogniser, "any", [np.full((1, 1), number) for number in range(6)], said)
    best = min(SCALES, key=lambda scale: wrong[scale].sum())
    assert found == (best, pytest.approx(100 * wrong[best].sum() / 18))
    assert len(searches) == 11 if seed == 0 else len(searches) <= 6 * len(SCALES)


def test_a_word_has_the_times_of_its_phones(heard: Heard) -> None:
    """The path through the words that were said is the alignment's, frame by frame."""
    for each, frames in zip(heard.corpus.splits["train"], heard.frames["train"], strict=True):
        words = heard.recogniser.decode(log_densities(heard.gmm, frames), "shipped")
        if texts(words) != list(each.words):
            continue
        states = heard.gmm.align(frames, each.words)
        spoken = np.flatnonzero(states >= 3)
        assert words[0].begin == pytest.approx(spoken[0] / 100, abs=0.021)
        assert words[-1].end == pytest.approx((spoken[-1] + 1) / 100, abs=0.021)
        assert all(word.begin < word.end for word in words)
        assert all(a.end <= b.begin for a, b in pairwise(words))
        return
    pytest.fail("no utterance of training was heard as it was said")


def brute_force(heard: Heard, scores: np.ndarray, words: Sequence[str], grammar: str) -> float:
    """The log probability of a text by its own alignment: the search is given no other words."""
    alone = Recogniser(heard.lexicon, heard.gmm.stay, {"only": only(words)})
    assert texts(alone.decode(scores, "only")) == list(words)
    (found,) = alone.nbest(scores, "only", 1)
    return found.acoustic + found.language + heard.recogniser.grammars[grammar].log_prob(words)


def only(words: Sequence[str]) -> str:
    """An ARPA text in which nothing else can be said, for words that differ."""
    sequence = ["<s>", *words, "</s>"]
    unigrams = "".join(f"-90\t{word}\t0\n" for word in sequence)
    bigrams = "".join(f"0\t{a} {b}\n" for a, b in pairwise(sequence))
    size = len(sequence)
    return f"\\data\\\nngram 1={size}\nngram 2={size - 1}\n\n\\1-grams:\n{unigrams}\n\\2-grams:\n{bigrams}\n\\end\\\n"


def test_an_nbest_list_has_the_likeliest_texts_with_their_parts(heard: Heard) -> None:
    scores = 0.01 * heard.scores("test")[0]  # so little that other words come near
    listed = heard.recogniser.nbest(scores, "bigram", 5)
    totals = [each.acoustic + each.language for each in listed]
    assert totals == sorted(totals, reverse=True)
    assert len({tuple(each.words) for each in listed}) == len(listed) > 1
    assert listed[0].words == texts(heard.recogniser.decode(scores, "bigram"))
    for each in listed[:2]:
        assert each.language == pytest.approx(heard.recogniser.grammars["bigram"].log_prob(each.words))
        if len(set(each.words)) == len(each.words):
            assert sum(each[1:]) == pytest.approx(brute_force(heard, scores, each.words, "bigram"), rel=1e-3)


def test_the_first_beam_that_suffices_finds_what_the_last_does(heard: Heard, monkeypatch: Any) -> None:
    find = partial(heard.recogniser.nbest, grammar="bigram", number=3)
    found = [find(0.01 * each) for each in heard.scores("test")]
    monkeypatch.setattr("hornn.speech.recogniser.LATTICE_BEAMS", (8.0,))
    assert found == [find(0.01 * each) for each in heard.scores("test")]


def test_a_recogniser_is_put_together_from_plain_values(heard: Heard) -> None:
    again = from_plain(heard.recogniser.plain())
    for each in heard.scores("test"):
        assert again.decode(0.1 * each, "bigram") == heard.recogniser.decode(0.1 * each, "bigram")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stay": [0.5]}, "its probabilities are none"),
        ({"stay": None}, "train anew"),
        ({"pronunciations": [["YES", 1]]}, "its words are no texts"),
        ({"pronunciations": 7}, "train anew"),
        ({"pronunciations": [["\x1b[2J", "EE"]]}, "its words are no texts"),
        ({"grammars": {"shipped": 1}}, "its words are no texts"),
        ({"grammars": {"shipped": "nothing"}}, "the grammar 'shipped', line 1"),
    ],
)
def test_damaged_values_are_refused(changes: dict[str, object], message: str, heard: Heard) -> None:
    with pytest.raises(ValueError, match=message):
        from_plain({**heard.recogniser.plain(), **changes})


def test_scores_that_are_not_finite_are_refused(heard: Heard) -> None:
    for search in (heard.recogniser.decode, partial(heard.recogniser.nbest, number=2)):
        with pytest.raises(ValueError, match="times the acoustic scale, are not finite"):
            search(np.full((30, heard.lexicon.number), np.nan), "bigram")


def test_a_scale_without_bound_is_refused(heard: Heard) -> None:
    with pytest.raises(ValueError, match="or the scale is too large"):
        heard.recogniser.decode(1e40 * np.ones((30, heard.lexicon.number)), "bigram")


@pytest.mark.parametrize("number", [1, 2, 5])
def test_in_very_few_frames_no_word_is_heard(heard: Heard, number: int) -> None:
    """The shortest word has six states."""
    scores = np.zeros((number, heard.lexicon.number))
    assert heard.recogniser.decode(scores, "bigram") == []
    assert all(not each.words for each in heard.recogniser.nbest(scores, "bigram", 2))


def test_a_grammar_without_a_whole_sentence_is_refused(heard: Heard) -> None:
    text = "\\data\\\nngram 1=2\n\n\\1-grams:\n-400 </s>\n0 YES\n\n\\end\\\n"
    with pytest.raises(ValueError, match="by the grammar 'shipped' no sentence can end"):
        Recogniser(heard.lexicon, heard.gmm.stay, {"shipped": text})


def test_a_name_may_have_joiners_and_nothing_that_acts(heard: Heard) -> None:
    values = heard.recogniser.plain()
    spelled = [
        ["Y\u200cES", *phones] if word == "YES" else [word, *phones]
        for word, *phones in values["pronunciations"]
    ]
    assert "Y\u200cES" in from_plain({**values, "pronunciations": spelled}).lexicon.words
    with pytest.raises(ValueError, match="has characters that cannot be shown"):
        make_lexicon([["Y\x1bES", "EE"]])


def test_a_grammar_without_the_words_of_the_dictionary_is_refused(heard: Heard) -> None:
    with pytest.raises(ValueError, match="'other' has no word of the dictionary"):
        Recogniser(heard.lexicon, heard.gmm.stay, {"other": only(["MAYBE"])})


def test_a_graph_without_bound_is_refused_before_it_is_made(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pronunciations of a word and the bigrams that lead to it multiply."""
    values = heard.recogniser.plain()
    made, composed = [], graphs.composed

    def compose(*given: Any) -> Any:
        made.append(composed(*given))
        return made[-1]

    monkeypatch.setattr(graphs, "composed", compose)
    from_plain(values)
    arcs = sum(len(graph.to_str().splitlines()) for graph in made)
    monkeypatch.setattr(graphs, "MOST_ARCS", arcs)
    from_plain(values)
    others = [["YES", *names] for names in product(["EE", "SS", "OO", "AA"], repeat=3)]
    values["pronunciations"] += others
    made.clear()
    with pytest.raises(
        ValueError, match=r"^the grammar '\w+' and the dictionary make a graph of [\d,]+ arcs, above"
    ):
        from_plain(values)
    assert len(made) < 2


@pytest.mark.corpus
def test_the_graphs_of_an4_are_far_below_the_bound(corpus_root: Any) -> None:
    corpus = read_corpus(Path(corpus_root("an4/etc/an4.dic")) / "an4")
    lexicon = read_lexicon(corpus.dictionary)
    said = [each.words for each in corpus.splits["train"]]
    asked = 0
    for text in (read_shipped(corpus.grammar), estimate_bigram(lexicon, said)[0]):
        grammar = parse(text, "AN4's")
        sentences = graphs.grammar(lexicon, grammar.words, grammar.model)
        asked += graphs.arcs_asked(lexicon, sentences)
    assert asked == 8_379 < graphs.MOST_ARCS / 400


def test_the_bigram_is_normalised_and_knows_every_word(heard: Heard, tmp_path: Path) -> None:
    """Its own reader refuses a file whose probabilities do not sum to 1."""
    path = tmp_path / "bigram.arpa"
    path.write_text(heard.recogniser.texts["bigram"])
    words, model = read_arpa(path)
    assert set(words) == {"YES", "NO", "SO", "<eos>"}
    assert model.order == 2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_graph_of_a_grammar_has_its_probabilities(heard: Heard, order: int) -> None:
    """Of sentences whose n-grams are listed: where one is not, a path may back off more than once."""
    names = [*heard.lexicon.words, "<eos>"]
    said = heard.said("train")
    model = KneserNey(len(names), names.index("<eos>"), order=order)
    model.fit(np.array([names.index(word) for words in said for word in [*words, "<eos>"]]), np.zeros(0, int))
    graph = graphs.grammar(heard.lexicon, names, model)
    for words in set(said):
        found = graphs.log_prob(heard.lexicon, words, graph)
        assert found == pytest.approx(Grammar(names, model).log_prob(words), rel=1e-4)


PRUNED = """\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-99 <s> 0.1205739
-0.6020600 YES 0.1205739
-0.6020600 NO 0
-0.6020600 SO 0
-0.6020600 </s>

\\2-grams:
-2 YES YES
-2 <s> YES

\\end\\
"""


def test_an_acoustic_score_is_the_same_by_a_grammar_whose_back_off_is_likelier(heard: Heard) -> None:
    """A bigram of 0.01 stands beside a back-off of 1.32 * 0.25: the search takes this one, the score does not."""
    alike = "\\data\\\nngram 1=5\n\n\\1-grams:\n-99 <s>\n-0.602 YES\n-0.602 NO\n-0.602 SO\n-0.602 </s>\n\n\\end\\\n"
    texts = {"pruned": PRUNED, "alike": alike}
    recogniser = Recogniser(heard.lexicon, heard.gmm.stay, texts)
    (scores, *_) = heard.scores("test")
    by_grammar = [
        {tuple(each.words): each for each in recogniser.nbest(0.02 * scores, name, 50)} for name in texts
    ]
    pruned, other = by_grammar
    both = [words for words in pruned if words in other]
    assert any(words[0] == "YES" for words in both)
    assert len(both) > 1
    for words in both:
        assert pruned[words].acoustic == pytest.approx(other[words].acoustic, rel=1e-4)
        assert pruned[words].language == pytest.approx(recogniser.grammars["pruned"].log_prob(words))


def test_the_comment_before_a_shipped_grammar_is_cut(heard: Heard) -> None:
    grammar = parse(read_shipped(heard.corpus.grammar), "tiny.lm")
    assert grammar.log_prob(["YES"]) == pytest.approx(2 * -0.6021 * np.log(10))


def test_a_grammar_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "endless.lm"
    path.write_text("\\data\\\nngram 1=1\n\n\\1-grams:\n0 YES\n\n\\end\\\n")
    with pytest.raises(ValueError, match=r"endless\.lm has no </s>"):
        read_shipped(path)


def test_scores_of_a_network_are_divided_by_the_prior() -> None:
    log_p = np.log([[0.5, 0.25, 0.25]])
    expected = np.log([[0.5 / 0.2, 0.25 / 0.4, 0.25 / 0.4]])
    np.testing.assert_allclose(acoustic_scores(log_p, [1, 3, 3]), expected)


def test_word_errors_by_hand() -> None:
    said, heard = [["A", "B", "C"], ["D", "E"]], [["A", "X", "C", "C"], ["D"]]
    assert 100 * compare(said, heard).wer == pytest.approx(60.0)
    assert errors_of(said, heard).tolist() == [2, 1]
    assert errors_of([["A"]], [[]]).tolist() == [1]
    lines = aligned(["first", "second"], said, heard)
    assert lines[0] == "first"
    assert lines[4:7] == ["second", "REF: D E", "HYP: D *"]


def test_the_weights_of_pauses_and_of_leaving_a_word_by_hand() -> None:
    lexicon = make_lexicon([["A", "AH"]])
    stay = np.linspace(0.1, 0.6, lexicon.number)
    graph = graphs.words_graph(lexicon, stay, 0.1, {"A"})
    found = sorted(arc.cost for arc in graphs.arcs_of(graph) if isinstance(arc, graphs.Arc) and not arc.state)
    leave, half = -0.1 * np.log(1 - stay), np.log(2)
    expected = sorted([half, half, leave[2], leave[5] + half, leave[5] + half])
    assert found == pytest.approx(expected, rel=1e-4)
