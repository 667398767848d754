"""What every model promises that is fitted without training, and what every model of counts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from hornn.checks import require_positive

State = dict[str, np.ndarray | int | float]


class FittedModel(ABC):
    """P(w_t | w_1 .. w_{t-1}), fitted in one pass, without a gradient.

    It predicts `classes`, one of the V words at each step; a subclass for `keys` reads their frames in place of ids.
    dtype, backend: what computes it, for a result.

    vocab_size: V, the number of words; every distribution sums to 1 over all of them, including words that the training
    text lacks. eos_id: the word that ends a sentence, None where the text has no sentences. Subclasses add keyword
    arguments of their own. A model that is not fitted yet, or not loaded, raises ValueError where it is asked for
    anything but its sizes.

    Raises ValueError for a vocabulary without words and an `eos_id` outside of it.
    """

    predicts: str = "classes"
    dtype: str = "fp64"
    backend: str = "numpy"

    def __init__(self, vocab_size: int, eos_id: int | None) -> None:
        require_positive(vocab_size=vocab_size)
        if eos_id is not None and (type(eos_id) is not int or not 0 <= eos_id < vocab_size):
            raise ValueError(
                f"eos_id must be from 0 to {vocab_size - 1:,}, or None for a text without sentences, got {eos_id!r}"
            )
        self.vocab_size = vocab_size
        self.eos_id = eos_id

    @abstractmethod
    def fit(self, train: np.ndarray, valid: np.ndarray) -> None:
        """Estimate from the ids of `train`; `valid` serves for constants that are chosen on it, and only for them."""

    @abstractmethod
    def score(self, ids: np.ndarray) -> np.ndarray:
        """(N,) float64: -ln P of each of the N ids given all before it, in nats, exactly left to right."""

    def hits(self, ids: np.ndarray) -> tuple[int, int]:
        """Whose quotient is the accuracy, as of `hornn.heads.base.Head.hits`; both 0 where none is measured."""
        return 0, 0

    def log_probs(self, split: Any) -> list[np.ndarray]:
        """ln P of each outcome at each step of each sequence of a split, (N, V): for data that judge by it."""
        raise NotImplementedError(f"{type(self).__name__} gives no log_probs")

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """How many numbers are stored: probabilities and back-off weights."""

    @property
    def notes(self) -> list[str]:
        """What a person should know of how it was fitted."""
        return []


class CountModel(FittedModel):
    """A fitted model that is made of counts alone, and that a checkpoint holds."""

    @abstractmethod
    def distribution(self, history: np.ndarray) -> np.ndarray:
        """(V,) float64: the probabilities of the word that follows the ids of `history`, which may be empty."""

    @abstractmethod
    def state(self) -> State:
        """All that was fitted: arrays of int64 or float64 and plain numbers, fit for a checkpoint."""

    @abstractmethod
    def load_state(self, state: Mapping[str, np.ndarray | int | float]) -> None:
        """Take over what `state` of a model with the same arguments gave."""

    def require_ids(self, ids: np.ndarray) -> np.ndarray:
        """`ids` as a vector of int64. ValueError for anything but whole numbers from 0 to V - 1."""
        array = np.asarray(ids)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(
                f"token ids come as a vector of whole numbers, got {array.dtype} of shape {array.shape}"
            )
        array = array.astype(np.int64)
        if array.size and not 0 <= array.min() <= array.max() < self.vocab_size:
            raise ValueError(
                f"token ids run from {array.min():,} to {array.max():,}; the vocabulary has 0 to "
                f"{self.vocab_size - 1:,}: encode the text with the vocabulary of this model"
            )
        return array
