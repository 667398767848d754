"""N-best lists of a recogniser: read, ranked under weights, compared with what was said; weights are found on them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hornn.data.lines import arriving_lines, shown_name

WEIGHTS = ("lm_weight", "old_weight", "word_penalty")
SIGNED = "word_penalty"  # the others are >= 0
ROUNDING = 1e-12  # of a break point, relative: two that are equal differ by less
STARTS = (0.1, 1.0, 10.0)  # of lm_weight, where the search begins


class Hypothesis(NamedTuple):
    """One text of a list, and what the recogniser thought of it: natural logarithms, more is better.

    line: its number in the file.
    """

    text: str
    acoustic: float
    old: float
    line: int


NBest = dict[str, list[Hypothesis]]  # the lists by the utterance's id


def read_nbest(path: Path, costs: bool = False) -> NBest:
    """The lists of a file, one hypothesis a line: utterance id, text, acoustic and old LM score, tab-separated.

    costs: whether less is better, as Kaldi writes it. ValueError for another line, a score that is no finite number,
    or a file without any.
    """
    lists: NBest = {}
    for number, line in numbered_lines(path):
        fields = line.split("\t")
        try:
            utterance, text, *numbers = fields
            acoustic, old = (-float(each) if costs else float(each) for each in numbers)
        except ValueError:
            raise ValueError(
                f"{shown_name(path)}, line {number}: a hypothesis is utterance id, text, acoustic score and old LM "
                f"score with tabs between them, got {line!r:.80}"
            ) from None
        if utterance.split() != [utterance]:
            raise ValueError(
                f"{shown_name(path)}, line {number}: an utterance id has no white space, got {utterance!r:.80}"
            )
        if not np.isfinite([acoustic, old]).all():
            raise ValueError(f"{shown_name(path)}, line {number}: a score must be finite, got {line!r:.80}")
        lists.setdefault(utterance, []).append(Hypothesis(text, acoustic, old, number))
    if not lists:
        raise ValueError(f"{shown_name(path)} holds no hypotheses: give a file that has some")
    return lists


def read_references(path: Path, lists: NBest) -> dict[str, list[str]]:
    """The words that were said: a line has the utterance id, white space, and the text, as in a `text` file of Kaldi.

    ValueError for an utterance that comes twice, or that is not in both, the references and the lists; for references
    without words.
    """
    said: dict[str, list[str]] = {}
    for number, line in numbered_lines(path):
        utterance, *words = line.split()
        if utterance in said:
            raise ValueError(f"{shown_name(path)}, line {number}: the utterance {utterance!r} comes twice")
        said[utterance] = words
    if lacking := sorted(said.keys() ^ lists.keys()):
        place = "hypotheses" if lacking[0] in said else f"reference in {shown_name(path)}"
        raise ValueError(f"the utterance {lacking[0]!r} has no {place}: give the same utterances in both")
    if not any(said.values()):
        raise ValueError(f"{shown_name(path)} holds no words: give what was said")
    return said


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    lines = itertools.chain.from_iterable(arriving_lines(path))
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


class Errors(NamedTuple):
    """How hypotheses differ from references of so many words, by the fewest edits."""

    words: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def number(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def percent(self) -> float:
        return 100 * self.number / self.words

    def __str__(self) -> str:
        parts = f"{self.substitutions:,} sub, {self.deletions:,} del, {self.insertions:,} ins"
        return f"{self.number:,} in {self.words:,} words: {parts}"


def count_errors(said: Sequence[str], heard: Sequence[str]) -> Errors:
    tags = [edit.tag for edit in levenshtein().editops(said, heard)]
    return Errors(len(said), *(tags.count(tag) for tag in ("replace", "delete", "insert")))


def sum_errors(said: Mapping[str, Sequence[str]], heard: Mapping[str, str]) -> Errors:
    """The errors of one text for each utterance, all together."""
    each = [count_errors(words, heard[utterance].split()) for utterance, words in said.items()]
    return Errors(*map(sum, zip(*each, strict=True)))


def levenshtein() -> Any:
    """The edit distance of RapidFuzz. ValueError where that is not installed."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise ValueError("word error rates need rapidfuzz: pip install -e '.[rescore]'") from None
    return Levenshtein


def make_tables(lists: NBest, log_probs: np.ndarray) -> dict[str, np.ndarray]:
    """What decides in each list: a row (acoustic, ln P, old, number of words) for each hypothesis.

    log_probs: ln P of all texts by the new model, in the order of the lists.
    """
    tables, place = {}, 0
    for utterance, hypotheses in lists.items():
        new = log_probs[place : place + len(hypotheses)].tolist()
        place += len(hypotheses)
        rows = [(h.acoustic, p, h.old, len(h.text.split())) for h, p in zip(hypotheses, new, strict=True)]
        tables[utterance] = np.array(rows)
    return tables


def vector(weights: Mapping[str, float]) -> np.ndarray:
    """What a row is multiplied with: the acoustic score counts once."""
    return np.array([1.0, *(weights[name] for name in WEIGHTS)])


def best(table: np.ndarray, weights: Mapping[str, float]) -> int:
    """The hypothesis with the highest total, the first of equals."""
    return int((table @ vector(weights)).argmax())


def find_weights(
    tables: Sequence[np.ndarray], errors: Sequence[np.ndarray], fixed: Mapping[str, float]
) -> dict[str, float]:
    """The weights, where `fixed` names any as given, whose best hypotheses have the fewest word errors.

    tables, errors: of each utterance, the rows of its hypotheses and how many errors each of these has. Along one
    weight the sum of errors is a step function, whose steps are where another hypothesis comes to the top; its least
    interval is found exactly, and its middle taken. One weight after the other, until none brings fewer errors; from
    each of several starts, of which the best counts.

    Source: Och 2003, Minimum error rate training in statistical machine translation, section 4.
    """
    free = [name for name in WEIGHTS if name not in fixed]
    starts = [dict.fromkeys(WEIGHTS, 0.0) | {"lm_weight": start} | dict(fixed) for start in STARTS]
    found = [
        descend(tables, errors, weights, free) for weights in (starts if "lm_weight" in free else starts[:1])
    ]
    return min(found, key=lambda each: each[0])[1]


def descend(
    tables: Sequence[np.ndarray],
    errors: Sequence[np.ndarray],
    weights: Mapping[str, float],
    free: Sequence[str],
) -> tuple[int, dict[str, float]]:
    """The fewest errors that are found from these weights by moving one after the other, and where."""
    here = dict(weights)
    fewest = total_errors(tables, errors, here)
    improved = True
    while improved:
        improved = False
        for name in free:
            there = here | {name: along(tables, errors, here, name)}
            if (number := total_errors(tables, errors, there)) < fewest:
                here, fewest, improved = there, number, True
    return fewest, here


def total_errors(
    tables: Sequence[np.ndarray], errors: Sequence[np.ndarray], weights: Mapping[str, float]
) -> int:
    return sum(int(each[best(table, weights)]) for table, each in zip(tables, errors, strict=True))


def along(
    tables: Sequence[np.ndarray], errors: Sequence[np.ndarray], weights: Mapping[str, float], name: str
) -> float:
    """The value of one weight, the others as they are, with the fewest errors: the middle of the widest interval."""
    first, changes = 0, []
    for table, each in zip(tables, errors, strict=True):
        offsets = table @ vector(dict(weights) | {name: 0.0})
        tops = list(upper_envelope(offsets, table[:, 1 + WEIGHTS.index(name)]))
        first += int(each[tops[0][1]])
        changes += [
            (x, int(each[after] - each[before])) for (_, before), (x, after) in itertools.pairwise(tops)
        ]
    changes.sort()
    edges = [x for x, _ in changes]
    low = (edges[0] if edges else 0.0) - 1 if name == SIGNED else 0.0
    ends = np.maximum([low, *edges, max([low, *edges]) + 1], low)
    number = np.cumsum([first, *(change for _, change in changes)])
    widths = np.diff(ends)
    real = widths > ROUNDING * np.maximum(1, np.abs(ends[1:]))
    number = np.where(real, number, number.max() + 1)
    place = int(np.lexsort((-widths, number))[0])
    return float((ends[place] + ends[place + 1]) / 2)


def upper_envelope(offsets: np.ndarray, slopes: np.ndarray) -> Iterator[tuple[float, int]]:
    """The lines offset + slope x that are on top from x = -inf to inf: where each comes to the top, and which it is."""
    tops: list[tuple[float, int]] = []
    for line in np.lexsort((np.arange(len(offsets)), -offsets, slopes)).tolist():
        if tops and slopes[line] == slopes[tops[-1][1]]:
            continue  # parallel to one that is not below it
        x = -np.inf
        while tops:
            start, top = tops[-1]
            x = float((offsets[top] - offsets[line]) / (slopes[line] - slopes[top]))
            if x > start:
                break
            tops.pop()
        tops.append((x if tops else -np.inf, line))
    yield from tops
