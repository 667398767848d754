"""The unigram cache over the last words, and Kneser-Ney interpolated with it (`model=kn_cache`)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hornn.baselines.counts import CountModel, State
from hornn.baselines.mixture import em_weights, interpolate
from hornn.baselines.ngram import KneserNey
from hornn.checks import is_whole, require_positive

NGRAM = "ngram."  # before the names of the n-gram model's state


def require_lengths(name: str, lengths: int | Sequence[int]) -> tuple[int, ...]:
    """One length, or several, as a tuple. ValueError unless all are different whole numbers of tokens, 1 or more."""
    given: tuple[Any, ...] = (lengths,)
    if isinstance(lengths, Sequence) and not isinstance(lengths, str):
        given = tuple(lengths)
    if not given or not all(is_whole(length) and length >= 1 for length in given):
        raise ValueError(
            f"{name} must be one whole number of tokens, 1 or more, or a list of such, got {lengths!r}"
        )
    if len(set(given)) < len(given):
        raise ValueError(f"{name} names a length twice, got {list(given)}: name each once")
    require_positive(**{name: max(given)})
    return given


def cache_scores(ids: np.ndarray, length: int, vocab_size: int) -> np.ndarray:
    """ln of the cache's probability of every token of a stream, (N,) float64; -inf for a word that it lacks.

        P(w_t) = |{s : max(0, t - L) <= s < t, w_s = w_t}| / min(t, L)        P(w_0) = 1/V

    the share of the word among the last L = `length` tokens, fewer at the stream's start. An empty cache gives every
    word the same probability, so each distribution sums to 1. Source: Kuhn & De Mori 1990, without their classes.
    """
    tokens = np.asarray(ids, dtype=np.int64)
    places = np.arange(len(tokens))
    # Occurrences word by word, in order: those in the window end just before the token itself.
    order = np.argsort(tokens, kind="stable")
    keys = tokens[order] * len(tokens) + order
    oldest = tokens[order] * len(tokens) + np.maximum(order - length, 0)
    counts = np.empty(len(tokens))
    counts[order] = places - np.searchsorted(keys, oldest)
    with np.errstate(divide="ignore"):
        scores: np.ndarray = np.log(counts / np.clip(places, 1, length))
    scores[:1] = -np.log(vocab_size)
    return scores


def cache_distribution(history: np.ndarray, length: int, vocab_size: int) -> np.ndarray:
    """(V,) float64: the probabilities of every word after `history`, as `cache_scores` has them."""
    window = np.asarray(history, dtype=np.int64)[-length:]
    if not window.size:
        return np.full(vocab_size, 1 / vocab_size)
    return np.bincount(window, minlength=vocab_size) / len(window)


class KneserNeyCache(CountModel):
    """P(w) = lambda_0 P_KN(w) + sum_k lambda_k P_k(w): modified Kneser-Ney with unigram caches of the last L_k words.

    order, fallback_discounts: as in `KneserNey`. lengths: the candidates L_1 .. L_K. `fit` takes the one L_k, with its
    weight by EM, under which the validation text is likeliest; all other lambda_k are 0. combine=true gives every
    candidate its weight by EM, so that near words may count more than far ones. A cache holds the stream's tokens, ends
    of sentences included, and runs on across them.

    Source: the "KN5 + cache" of Mikolov et al. 2011, 125 on Penn Treebank. Neither the kind of the cache nor its
    length and weight are published; one length and one weight for all positions is our reading.
    Raises ValueError for no length or one below 1, and what KneserNey raises.
    """

    def __init__(
        self,
        vocab_size: int,
        eos_id: int | None,
        order: int = 5,
        fallback_discounts: Sequence[float] | None = None,
        lengths: Sequence[int] = (50, 100, 200, 400, 800, 1600),
        combine: bool = False,
    ) -> None:
        super().__init__(vocab_size, eos_id)
        self.ngram = KneserNey(vocab_size, eos_id, order, fallback_discounts)
        self.lengths = require_lengths("lengths", lengths)
        self.combine = combine
        self.weights = np.zeros(0)  # of Kneser-Ney and of the cache of each length

    def fit(self, train: np.ndarray, valid: np.ndarray) -> None:
        self.ngram.fit(train, valid)
        log_p = self._parts(valid, self.lengths)
        best = -np.inf
        for choice in [range(len(self.lengths))] if self.combine else [[k] for k in range(len(self.lengths))]:
            columns = [0, *(1 + k for k in choice)]
            weights = em_weights(log_p[:, columns])
            if (likelihood := interpolate(log_p[:, columns], weights).sum()) > best:
                best, self.weights = likelihood, np.zeros(log_p.shape[1])
                self.weights[columns] = weights

    def score(self, ids: np.ndarray) -> np.ndarray:
        weights = self._fitted()
        used = [length for length, weight in zip(self.lengths, weights[1:], strict=True) if weight > 0]
        return -interpolate(self._parts(ids, used), weights[[True, *(weights[1:] > 0)]])

    def distribution(self, history: np.ndarray) -> np.ndarray:
        first, *others = self._fitted()
        p: np.ndarray = first * self.ngram.distribution(history)
        for length, weight in zip(self.lengths, others, strict=True):
            p += weight * cache_distribution(history, length, self.vocab_size)
        return p

    @property
    def notes(self) -> list[str]:
        return self.ngram.notes

    @property
    def num_parameters(self) -> int:
        return self.ngram.num_parameters + int((self._fitted() > 0).sum())

    def state(self) -> State:
        ngram = {NGRAM + name: value for name, value in self.ngram.state().items()}
        return {**ngram, "weights": self._fitted()}

    def load_state(self, state: Mapping[str, np.ndarray | int | float]) -> None:
        own = {name.removeprefix(NGRAM): value for name, value in state.items() if name.startswith(NGRAM)}
        self.ngram.load_state(own)
        if np.shape(state["weights"]) != (1 + len(self.lengths),):
            raise ValueError(
                f"the state has {np.size(state['weights'])} weights, the model 1 + {len(self.lengths)}: load it into "
                "a model with its own lengths"
            )
        weights = np.asarray(state["weights"])
        if weights.dtype.kind != "f" or not (weights >= 0).all() or not abs(weights.sum() - 1) <= 1e-6:
            raise ValueError(
                "the weights of the n-grams and the caches are no shares of 1: fit the model anew"
            )
        self.weights = weights

    def _parts(self, ids: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """ln P of every token under Kneser-Ney and under the cache of each length, (N, 1 + K)."""
        caches = [cache_scores(self.require_ids(ids), length, self.vocab_size) for length in lengths]
        return np.stack([-self.ngram.score(ids), *caches], axis=1)

    def _fitted(self) -> np.ndarray:
        if not self.weights.size:
            raise ValueError("the weights of the cache are not fitted yet: call fit or load_state first")
        return self.weights
