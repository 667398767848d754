"""A trained model as its users see it, whatever it is inside: a network, counts, or several models mixed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hornn.baselines.cache import cache_distribution, cache_scores
from hornn.baselines.counts import CountModel
from hornn.baselines.mixture import em_weights, interpolate
from hornn.checks import require_choice
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import Vocabulary
from hornn.heads.base import resolve_precision
from hornn.network import SequenceModel
from hornn.use.scoring import AT_ONCE, CHUNK, Reading, begin, score_dynamically, score_lines, score_stream


class Scorer(ABC):
    """Scores text and reads it on.

    name: the file that it comes from. vocabulary, tokenizer: what turns text into ids. card: what its checkpoint
    says of it and of the corpus that it was trained on; an ARPA file says nothing, and has none. read_as, precision:
    how it reads and in which numbers, for a person.
    """

    name: str
    vocabulary: Vocabulary
    tokenizer: Tokenizer
    card: Mapping[str, Any] | None
    read_as: str
    precision: str

    @abstractmethod
    def score(self, ids: np.ndarray) -> np.ndarray:
        """-ln P of every token of a text, in its order, each given all before it, in nats, (N,) float64."""

    @abstractmethod
    def score_lines(self, ids: np.ndarray, lengths: np.ndarray, batch_size: int) -> np.ndarray:
        """What `score` gives, but each line, of `lengths` tokens, is read as if there were no other.

        batch_size: how many lines are read side by side.
        """

    @abstractmethod
    def begin(self, ids: Sequence[int] = ()) -> Reading:
        """The reading of a text that begins with these tokens."""

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """How many numbers it consists of."""


class NetworkScorer(Scorer):
    """A network, which reads `batch_size` columns, `seq_len` tokens at a time; 1 column is exactly left to right.

    dynamic_lr: the learning rate at which it learns from each `seq_len` tokens after it scored them, None for not at
    all. `prepare` sets these, and the precision, before anything is scored.
    """

    def __init__(
        self, name: str, network: SequenceModel, card: Mapping[str, Any], vocabulary: Vocabulary
    ) -> None:
        self.name, self.network, self.card, self.vocabulary = name, network, card, vocabulary
        self.tokenizer = Tokenizer.from_state(card["tokenizer"])

    def prepare(
        self, batch_size: int, seq_len: int | None, dynamic_lr: float | None = None, precision: str = "fp32"
    ) -> None:
        """How to score. Where `seq_len` is None a chunk has `AT_ONCE` tokens of all columns, to learn from `CHUNK`.

        ValueError for a precision that the output layer has not, or in which it cannot learn.
        """
        head = self.network.head
        require_choice("precision", precision, head.precisions)
        head.scoring = head.nearest(resolve_precision(precision, self.network.device, self.network.native))
        if dynamic_lr is not None and head.scoring != "fp32":
            raise ValueError(f"dynamic_lr= learns in fp32: leave out precision={precision}")
        self.batch_size, self.seq_len = batch_size, seq_len or CHUNK
        self.stream_len = seq_len or max(1, AT_ONCE // batch_size)
        self.precision = head.scoring
        self.learn_at(dynamic_lr)

    def learn_at(self, dynamic_lr: float | None) -> None:
        self.dynamic_lr = dynamic_lr
        self.read_as = f"{self.batch_size} column{'s' * (self.batch_size > 1)}, state carried"
        if dynamic_lr is not None:
            self.read_as += f", weights updated every {self.seq_len} tokens at learning rate {dynamic_lr}"

    def score(self, ids: np.ndarray) -> np.ndarray:
        start_id = self.vocabulary.eos_id
        with self.network.evaluating():
            if self.dynamic_lr is not None:
                return score_dynamically(self.network, ids, start_id, self.seq_len, self.dynamic_lr)
            return score_stream(self.network, ids, start_id, self.batch_size, self.stream_len)

    def score_lines(self, ids: np.ndarray, lengths: np.ndarray, batch_size: int) -> np.ndarray:
        start_id = self.vocabulary.eos_id
        with self.network.evaluating():
            return score_lines(self.network, ids, lengths, start_id, batch_size, self.seq_len)

    def begin(self, ids: Sequence[int] = ()) -> Reading:
        return begin(self.network, self.vocabulary.eos_id, ids)

    @property
    def num_parameters(self) -> int:
        return self.network.num_parameters


class CountReading(Reading):
    def __init__(self, model: CountModel, ids: tuple[int, ...]) -> None:
        self.model, self.ids = model, ids
        with np.errstate(divide="ignore"):
            self.log_probs = torch.from_numpy(np.log(model.distribution(np.array(ids, dtype=np.int64))))

    def after(self, ids: Sequence[int]) -> Reading:
        return CountReading(self.model, (*self.ids, *ids))


class CountScorer(Scorer):
    """A model of counts, which always reads exactly left to right."""

    read_as = "left to right"
    precision = "fp64"

    def __init__(
        self,
        name: str,
        model: CountModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        card: Mapping[str, Any] | None,
    ) -> None:
        self.name, self.model, self.vocabulary = name, model, vocabulary
        self.tokenizer, self.card = tokenizer, card

    def score(self, ids: np.ndarray) -> np.ndarray:
        return self.model.score(ids)

    def score_lines(self, ids: np.ndarray, lengths: np.ndarray, batch_size: int) -> np.ndarray:
        lines = np.split(ids, np.cumsum(lengths)[:-1])
        return np.concatenate([self.model.score(line) for line in lines])

    def begin(self, ids: Sequence[int] = ()) -> Reading:
        return CountReading(self.model, tuple(ids))

    @property
    def num_parameters(self) -> int:
        return self.model.num_parameters


class MixtureReading(Reading):
    """parts: of each model, by its own ids. ids: what was read, for the caches."""

    def __init__(self, mixture: "Mixture", parts: Sequence[Reading], ids: tuple[int, ...]) -> None:
        self.mixture, self.parts, self.ids = mixture, parts, ids
        models, caches = np.split(mixture.weights, [len(mixture.scorers)])
        p = torch.zeros(len(mixture.vocabulary), dtype=torch.float64)
        for part, own, weight in zip(parts, mixture.ids, models, strict=True):
            p = p + weight * part.log_probs.exp()[torch.from_numpy(own)]
        for length, weight in zip(mixture.lengths, caches, strict=True):
            window = np.array(ids[-length:], dtype=np.int64)
            p = p + weight * torch.from_numpy(cache_distribution(window, length, len(mixture.vocabulary)))
        self.log_probs = p.log()

    def after(self, ids: Sequence[int]) -> Reading:
        parts = [part.after(own) for part, own in zip(self.parts, self.mixture.by_model(ids), strict=True)]
        return MixtureReading(self.mixture, parts, (*self.ids, *ids))


class Mixture(Scorer):
    """Several models, and unigram caches of the last `lengths` tokens, interpolated linearly.

    What the vocabulary, the tokenizer and the corpus are is said by the first model that knows its corpus. The
    others may have the same words in another order. `fit` sets `weights`, of the models and then of the caches.

    Raises ValueError where the vocabularies differ.
    """

    def __init__(self, scorers: Sequence[Scorer], lengths: Sequence[int] = ()) -> None:
        self.scorers, self.lengths = list(scorers), list(lengths)
        first = next((scorer for scorer in scorers if scorer.card is not None), scorers[0])
        self.vocabulary, self.tokenizer, self.card = first.vocabulary, first.tokenizer, first.card
        self.name = first.name
        self.ids = [translate(first, scorer) for scorer in scorers]
        self.parts = [*(scorer.name for scorer in scorers), *(f"cache of {length}" for length in lengths)]
        self.weights = np.full(len(self.parts), 1 / len(self.parts))
        self.read_as = "; ".join(dict.fromkeys(scorer.read_as for scorer in scorers))
        self.precision = ", ".join(dict.fromkeys(scorer.precision for scorer in scorers))

    def fit(self, valid: np.ndarray) -> None:
        """Choose the weights by EM on the ids of a text that no model was trained on."""
        self.weights = em_weights(self._log_p(valid))

    def score(self, ids: np.ndarray) -> np.ndarray:
        return -interpolate(self._log_p(ids), self.weights)

    def score_lines(self, ids: np.ndarray, lengths: np.ndarray, batch_size: int) -> np.ndarray:
        models = [
            -scorer.score_lines(own[ids], lengths, batch_size)
            for scorer, own in zip(self.scorers, self.ids, strict=True)
        ]
        lines = np.split(ids, np.cumsum(lengths)[:-1]) if self.lengths else []
        caches = [np.concatenate([self._cached(line, length) for line in lines]) for length in self.lengths]
        return -interpolate(np.stack([*models, *caches], axis=1), self.weights)

    def begin(self, ids: Sequence[int] = ()) -> Reading:
        parts = [scorer.begin(own) for scorer, own in zip(self.scorers, self.by_model(ids), strict=True)]
        return MixtureReading(self, parts, tuple(ids))

    def by_model(self, ids: Sequence[int]) -> list[list[int]]:
        """These tokens by the ids of each model."""
        return [[int(own[i]) for i in ids] for own in self.ids]

    @property
    def num_parameters(self) -> int:
        return sum(scorer.num_parameters for scorer in self.scorers)

    def _log_p(self, ids: np.ndarray) -> np.ndarray:
        """ln P of every token under each part, (N, K)."""
        models = [-scorer.score(own[ids]) for scorer, own in zip(self.scorers, self.ids, strict=True)]
        caches = [self._cached(ids, length) for length in self.lengths]
        return np.stack([*models, *caches], axis=1)

    def _cached(self, ids: np.ndarray, length: int) -> np.ndarray:
        return cache_scores(ids, length, len(self.vocabulary))


def translate(one: Scorer, other: Scorer) -> np.ndarray:
    """The id in `other` of every word of `one`. ValueError, with the difference, unless both have the same words."""
    words = one.vocabulary.index.keys(), other.vocabulary.index.keys()
    if words[0] != words[1]:
        read = ["characters" if scorer.tokenizer.unit == "char" else "words" for scorer in (one, other)]
        if read[0] != read[1]:
            raise ValueError(
                f"{one.name} reads {read[0]}, and {other.name} reads {read[1]}: mix models that read alike"
            )
        said = [
            f"{len(lacking):,} of {scorer.name} alone, such as {min(lacking)!r}"
            for scorer, lacking in ((one, words[0] - words[1]), (other, words[1] - words[0]))
            if lacking
        ]
        raise ValueError(
            f"{one.name} and {other.name} have different vocabularies of {len(words[0]):,} and {len(words[1]):,} "
            f"words ({'; '.join(said)}): mix models that were trained on one corpus, with "
            "one data.min_count and data.max_size"
        )
    return np.array([other.vocabulary.index[word] for word in one.vocabulary.words])
