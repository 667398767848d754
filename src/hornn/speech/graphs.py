"""The graphs that recordings are searched in: from states, frame by frame, to words.

    graph = H ∘ W        H: states -> words, each word by any of its pronunciations, with pauses between words
                         W: words, as a sentence or a grammar has them

A path through H is in one state at each frame. From a frame to the next it stays in state s with the probability
stay[s], else it goes to the state's successor. Weights are -ln P; a path's is their sum. Input labels are states + 1,
output labels are words + 1, and 0 is neither. A word's label stands where its first state begins.
"""

import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hornn.baselines.ngram import BackoffModel
from hornn.speech.lexicon import STATES, Lexicon
from hornn.speech.packages import load

MOST = 5_000  # places of a graph of word sequences
# Arcs of all graphs of a recogniser, as `arcs_asked` estimates them: for the two graphs of CMU AN4 8,379, 0.2 % of this
# bound. They have 10,259. The pronunciations of a word multiply with the n-grams that lead to the word, so a short text
# could ask for any number.
MOST_ARCS = 4_000_000
PAUSE = 0.5  # the probability of a pause before the first word, and after each word


def words_graph(lexicon: Lexicon, stay: np.ndarray, scale: float, words: Container[str]) -> Any:
    """H of any sequence of `words`, with `scale` on its -ln P of staying and going on.

    stay: (S,) the probability of each state that it is also the next frame's.
    """
    loop, go = (-scale * np.log(stay)).tolist(), (-scale * np.log1p(-stay)).tolist()
    begin, between, pausing, free = 0, 1, 2, 3
    no_pause, pause = -math.log(1 - PAUSE), -math.log(PAUSE)
    arcs = [f"{begin} {between} 0 0 {no_pause}", f"{begin} {pausing} 0 0 {pause}"]

    def chain(source: int, states: list[int], word: int) -> tuple[int, float]:
        """Add the states one after the other; the place after the last one, and the weight of leaving it."""
        nonlocal free
        weight = 0.0
        for state in states:
            arcs.append(f"{source} {free} {state + 1} {word} {weight}")
            arcs.append(f"{free} {free} {state + 1} 0 {loop[state]}")
            source, free, word, weight = free, free + 1, 0, go[state]
        return source, weight

    end, weight = chain(pausing, lexicon.states([0]), 0)
    arcs.append(f"{end} {between} 0 0 {weight}")
    for word, phones in lexicon.pronunciations:
        if lexicon.words[word] not in words:
            continue
        end, weight = chain(between, lexicon.states(phones), word + 1)
        arcs.append(f"{end} {between} 0 0 {weight + no_pause}")
        arcs.append(f"{end} {pausing} 0 0 {weight + pause}")
    return compiled([*arcs, f"{between}"], "olabel")


def labels_of(lexicon: Lexicon) -> dict[str, int]:
    """The label of each word."""
    return {word: place for place, word in enumerate(lexicon.words, start=1)}


def sentence(lexicon: Lexicon, words: Sequence[str]) -> Any:
    """W of one sentence."""
    known = labels_of(lexicon)
    labels = [known[word] for word in words]
    arcs = [f"{place} {place + 1} {label} {label}" for place, label in enumerate(labels)]
    return compiled([*arcs, f"{len(labels)}"], "ilabel")


def grammar(lexicon: Lexicon, names: Sequence[str], model: BackoffModel) -> Any:
    """W of all sentences of an n-gram model, whose ids mean `names`; words that the lexicon lacks are left out.

    A place of the graph is a context: the last words that the model knows as the beginning of a longer n-gram. The arc
    of a context without its first word has no label and the back-off weight. It is open to the words that are listed
    after the context, too, as in Kaldi: where such an n-gram is less likely than its back-off, as it may be in a model
    that is not interpolated, the back-off counts.
    """
    known = labels_of(lexicon)
    labels = {i: known[name] for i, name in enumerate(names) if name in known}
    contexts: dict[tuple[int, ...], float] = {(): 1.0} | {
        tuple(ids): float(gamma)
        for n, level in enumerate(model.levels[:-1], start=1)
        for ids, gamma in zip(model.spelled(n, np.arange(len(level.p))).tolist(), level.gamma, strict=True)
    }
    places = {context: place for place, context in enumerate(contexts)}

    def place_after(words: tuple[int, ...]) -> int:
        """The place of the longest context that these words end with."""
        while words not in places:
            words = words[1:]
        return places[words]

    arcs, finals = [f"{len(places)} {place_after((model.begin_id,))} 0 0 0"], []
    for context, gamma in list(contexts.items())[1:]:
        if gamma > 0:
            arcs.append(f"{places[context]} {place_after(context[1:])} 0 0 {-math.log(gamma)}")
    for n, level in enumerate(model.levels, start=1):
        for (*context, word), p in zip(
            model.spelled(n, np.arange(len(level.p))).tolist(), level.p, strict=True
        ):
            if p <= 0:
                continue
            source = places[tuple(context)]
            if word == model.eos_id:
                finals.append(f"{source} {-math.log(p)}")
            elif word in labels:
                target = place_after((*context, word))
                arcs.append(f"{source} {target} {labels[word]} {labels[word]} {-math.log(p)}")
    return compiled([*arcs, *finals], "ilabel")


def log_prob(lexicon: Lexicon, words: Sequence[str], sentences: Any) -> float:
    """ln P of one sentence along the best path of a grammar's graph, in which it is."""
    kaldifst = load("kaldifst")
    path = kaldifst.shortest_path(composed(sentence(lexicon, words), sentences))
    return -float(kaldifst.get_linear_symbol_sequence(path)[3].value)


def compiled(lines: list[str], sort: str) -> Any:
    """The graph of these arcs, sorted by one of their labels; the first line's source is its beginning."""
    kaldifst = load("kaldifst")
    graph = kaldifst.compile("\n".join(lines) + "\n", acceptor=False)
    kaldifst.arcsort(graph, sort)
    return graph


def of_sentence(lexicon: Lexicon, stay: np.ndarray, words: Sequence[str]) -> Any:
    """H ∘ W of what was said."""
    return composed(words_graph(lexicon, stay, 1.0, words), sentence(lexicon, words))


def composed(words: Any, sentences: Any) -> Any:
    """H ∘ W."""
    return load("kaldifst").compose(words, sentences)


def arcs_asked(lexicon: Lexicon, sentences: Any) -> int:
    """About how many arcs H ∘ W has, which is not made: two for each state of a word, at each place that the word leads
    to, and one from each place where the word may follow to each of its pronunciations."""
    ways, states = Counter[int](), Counter[int]()
    for word, phones in lexicon.pronunciations:
        ways[word + 1] += 1
        states[word + 1] += STATES * len(phones)
    followed = [(arc.word, arc.target) for arc in arcs_of(sentences) if isinstance(arc, Arc)]
    return sum(ways[word] for word, _ in followed) + 2 * sum(states[word] for word, _ in set(followed))


def states_of(path: Any) -> np.ndarray:
    """(N,) int64: the states of a linear graph, frame by frame."""
    _, labels, _, _ = load("kaldifst").get_linear_symbol_sequence(path)
    return np.array(labels, dtype=np.int64) - 1


class Arc(NamedTuple):
    """From one place of a graph to another: its labels and its -ln P."""

    source: int
    target: int
    state: int
    word: int
    cost: float


def arcs_of(lattice: Any) -> Iterator[Arc | tuple[int, float]]:
    """What a search found: its arcs, from the beginning on, and its ends with the cost of ending there."""
    for line in lattice.to_str(show_weight_one=True).splitlines():
        *labels, costs = line.split()
        cost = sum(map(float, costs.split(",")))
        if len(labels) == 1:
            yield int(labels[0]), cost
        else:
            source, target, state, word = map(int, labels)
            yield Arc(source, target, state, word, cost)


def likeliest(lattice: Any, number: int, beam: float) -> Iterator[tuple[list[int], float]]:
    """At most `number` sequences of word labels, the likeliest first, with the cost of the best path of each."""
    kaldifst = load("kaldifst")
    lines = [
        f"{arc.source} {arc.target} {arc.word} {arc.word} {arc.cost}"
        if isinstance(arc, Arc)
        else f"{arc[0]} {arc[1]}"
        for arc in arcs_of(lattice)
    ]
    words = compiled(lines, "ilabel")
    kaldifst.rmepsilon(words)
    # Without a bound, the words of a vague lattice may have more sequences than memory holds.
    words = kaldifst.determinize(words, weight=str(beam), nstate=MOST)
    best = kaldifst.shortest_path(words, n=number)
    for path in kaldifst.convert_nbest_to_vector(best):
        _, labels, _, cost = kaldifst.get_linear_symbol_sequence(path)
        yield labels, cost.value
