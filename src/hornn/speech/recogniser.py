"""From what a network says of each frame to words: a search through all that the grammar allows.

    words = argmax over paths of   sum_t c (ln p(s_t | x) - ln p(s_t))  +  0.1 ln P(states)  +  ln P(words)

p(s | x) comes from the network, p(s) is the share of state s in training, and c is the acoustic scale. P(states) is of
the hidden Markov models, 0.1 being Kaldi's usual scale of it; P(words) is of the grammar and the pauses.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hornn.speech import graphs
from hornn.speech.grammar import Grammar, parse
from hornn.speech.lexicon import STATES, Lexicon, is_name, make_lexicon
from hornn.speech.packages import load
from hornn.speech.word_errors import errors_of

STATE_SCALE = 0.1
BEAM = 15.0
# How far behind the best a hypothesis of an n-best list may be. The first that suffices is taken: of a network that has
# learned little, the lattice of the last one may hold so many texts that it takes minutes.
LATTICE_BEAMS = (2.0, 4.0, 8.0)
SCALES = (0.05, 0.08, 0.12, 0.2, 0.3, 0.5)  # of acoustics, tried on validation
FRAME = 0.01  # seconds from one frame to the next


class Word(NamedTuple):
    """A word that was heard, from its begin to its end in seconds."""

    text: str
    begin: float
    end: float


class Hypothesis(NamedTuple):
    """One of the likeliest texts, and how likely: natural logarithms, the acoustic one with its scale."""

    words: list[str]
    acoustic: float
    language: float


class Recogniser:
    """The search for words, by the hidden Markov models of a lexicon and by any of several grammars.

    stay: (S,) the probability that a state is also the next frame's. grammars: ARPA texts by name.
    Raises ValueError for a text that is no grammar, for one that shares no word with the lexicon or by which no
    sentence can end, and where the graphs would be too large.
    """

    def __init__(self, lexicon: Lexicon, stay: np.ndarray, grammars: Mapping[str, str]) -> None:
        self.lexicon = lexicon
        self.stay = stay
        self.texts = dict(grammars)
        self.grammars: dict[str, Grammar] = {}
        self.sentences: dict[str, Any] = {}
        self.graphs: dict[str, Any] = {}
        asked = 0
        words = graphs.words_graph(lexicon, stay, STATE_SCALE, frozenset(lexicon.words))
        for name, text in grammars.items():
            self.grammars[name] = grammar = parse(text, f"the grammar {name!r}")
            if not set(grammar.words) & set(lexicon.words):
                raise ValueError(f"the grammar {name!r} has no word of the dictionary: give one that has")
            self.sentences[name] = sentences = graphs.grammar(lexicon, grammar.words, grammar.model)
            asked += graphs.arcs_asked(lexicon, sentences)
            if asked > graphs.MOST_ARCS:
                raise ValueError(
                    f"the grammar {name!r} and the dictionary make a graph of {asked:,} arcs, above the "
                    f"{graphs.MOST_ARCS:,} that are searched: give fewer pronunciations or n-grams"
                )
            self.graphs[name] = graph = graphs.composed(words, sentences)
            if graph.start < 0:
                raise ValueError(f"by the grammar {name!r} no sentence can end: give </s> a probability")

    def plain(self) -> dict[str, Any]:
        """All that `from_plain` needs, in plain values."""
        return {
            "pronunciations": self.lexicon.spelled(),
            "stay": self.stay.tolist(),
            "grammars": self.texts,
        }

    def decode(self, scores: np.ndarray, grammar: str) -> list[Word]:
        """The words of the best path. scores: (N, S) c (ln p(s | x) - ln p(s)) of each frame and state.

        A last word that the frames are too few for is left out.
        """
        decoder_of = load("kaldi_decoder")
        decoder = decoder_of.FasterDecoder(self.graphs[grammar], decoder_of.FasterDecoderOptions(beam=BEAM))
        decoder.decode(decodable(scores))
        _, path = decoder.get_best_path()
        words = words_of(path, self.lexicon)
        return words if decoder.reached_final() else words[:-1]

    def hear(self, scale: float, scores: Sequence[np.ndarray], grammar: str) -> list[list[str]]:
        """The words of each utterance's best path. scores: (N, S) each, without a scale."""
        return [[word.text for word in self.decode(scale * each, grammar)] for each in scores]

    def nbest(self, scores: np.ndarray, grammar: str, number: int) -> list[Hypothesis]:
        """At most `number` texts, the likeliest first, each by its best path. scores: as for `decode`.

        None where the frames are too few for any sentence.
        """
        texts = list[tuple[list[int], float]]()
        for beam in LATTICE_BEAMS:
            texts = self._texts(scores, grammar, number, beam)
            if not texts or sum(cost <= texts[0][1] + beam for _, cost in texts) >= number:
                break
        found = []
        for labels, cost in texts:
            words = [self.lexicon.words[label - 1] for label in labels]
            acoustic = -cost - graphs.log_prob(self.lexicon, words, self.sentences[grammar])
            found.append(Hypothesis(words, acoustic, self.grammars[grammar].log_prob(words)))
        return found

    def _texts(
        self, scores: np.ndarray, grammar: str, number: int, beam: float
    ) -> list[tuple[list[int], float]]:
        """At most `number` texts as labels, with the cost of the best path of each: all that are within the beam."""
        decoder_of = load("kaldi_decoder")
        config = decoder_of.LatticeSimpleDecoderConfig(beam=BEAM, lattice_beam=beam)
        decoder = decoder_of.LatticeSimpleDecoder(self.graphs[grammar], config)
        decoder.decode(decodable(scores))
        if math.isinf(decoder.final_relative_cost()):
            return []
        _, lattice = decoder.get_raw_lattice()
        return list(graphs.likeliest(lattice, number, beam))


def from_plain(values: Mapping[str, Any]) -> Recogniser:
    """The recogniser that `Recogniser.plain` took apart. Raises ValueError for values that make none."""
    try:
        spelled, stay, texts = values["pronunciations"], values["stay"], values["grammars"]
        if not all(isinstance(each, list) and all(map(is_name, each)) for each in spelled) or not all(
            type(part) is str for pair in texts.items() for part in pair
        ):
            raise TypeError("its words are no texts")
        lexicon, probabilities = make_lexicon(spelled), np.array(stay, dtype=np.float64)
        if probabilities.shape != (lexicon.number,) or not ((probabilities > 0) & (probabilities < 1)).all():
            raise TypeError("its probabilities are none")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no recogniser can be made of what is kept ({error!r}): train anew") from error
    return Recogniser(lexicon, probabilities, texts)


def decodable(scores: np.ndarray) -> Any:
    """Scores (N, S) as the decoders read them: label s + 1 of a graph has column s. ValueError: one is not finite."""
    with np.errstate(over="ignore"):
        given = np.ascontiguousarray(scores, dtype=np.float32)
    if not np.isfinite(given).all():
        raise ValueError(
            "the network's scores, times the acoustic scale, are not finite: its weights are damaged or have diverged, "
            "or the scale is too large"
        )
    return load("kaldi_decoder").DecodableCtc(given)


def acoustic_scores(log_posteriors: np.ndarray, counts: Sequence[int]) -> np.ndarray:
    """(N, S): ln p(s | x) - ln p(s), p(s) by the counts of the states in training, one added to each."""
    prior = np.asarray(counts, dtype=np.float64) + 1
    difference: np.ndarray = log_posteriors - np.log(prior / prior.sum())
    return difference


def words_of(path: Any, lexicon: Lexicon) -> list[Word]:
    """The words of a linear graph with their times; a pause belongs to none."""
    frame, words = 0, list[Word]()
    for arc in graphs.arcs_of(path):
        if not isinstance(arc, graphs.Arc):
            continue
        if arc.word:
            words.append(Word(lexicon.words[arc.word - 1], round(frame * FRAME, 2), 0.0))
        if arc.state:
            frame += 1
            if arc.state > STATES:  # no pause
                words[-1] = words[-1]._replace(end=round(frame * FRAME, 2))
    return words


def choose_scale(
    recogniser: Recogniser, grammar: str, scores: Sequence[np.ndarray], said: Sequence[Sequence[str]]
) -> tuple[float, float]:
    """The acoustic scale with the fewest word errors, the least of equals, and their rate in percent.

    scores, said: of the validation utterances, the scores (N, S) without a scale. Scales are those of `SCALES`. The
    search takes longer for small ones: they come last, and end where they cannot be the best any more, which shows soon
    because the utterances that were hardest come first.
    """
    best, fewest = SCALES[-1], math.inf
    hardest_first = list(range(len(scores)))
    for scale in reversed(SCALES):
        errors, total = dict[int, int](), 0
        for number in hardest_first:
            heard = recogniser.hear(scale, [scores[number]], grammar)
            errors[number] = int(errors_of([said[number]], heard)[0])
            total += errors[number]
            if total > fewest:
                break
        else:
            best, fewest = scale, total
            hardest_first.sort(key=errors.__getitem__, reverse=True)
    return best, 100 * fewest / sum(map(len, said))
