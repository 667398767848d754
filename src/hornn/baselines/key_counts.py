"""Frequencies of keys: what a network of polyphonic music has to beat."""

from collections.abc import Mapping, Sequence

import numpy as np

from hornn.baselines.counts import CountModel, State
from hornn.checks import require_range
from hornn.data.music import key_chances, key_nll, key_probabilities


class KeyCounts(CountModel):
    """Each key by itself, by how often it sounds in the training data, one added to each count.

        order 1:  P(y_t,k = 1) = (c_k + 1) / (N + 2)
        order 2:  P(y_t,k = 1 | y_{t-1,k} = s) = (c_k,s + 1) / (N_k,s + 2)

    c_k of the N frames have key k; c_k,s of the N_k,s frames that follow one in which key k was s (0 or 1). The frame
    before a piece is silent. Source: none, it is the least that a user may ask for. ValueError for another order.
    """

    predicts = "keys"

    def __init__(self, vocab_size: int, eos_id: int | None = None, order: int = 2) -> None:
        super().__init__(vocab_size, eos_id)
        require_range("model.order", order, "1 or 2", order in (1, 2))
        self.order = order
        self.p = np.full((2, vocab_size), np.nan)

    def fit(self, train: Sequence[np.ndarray], valid: Sequence[np.ndarray]) -> None:  # type: ignore[override]
        self.p = key_probabilities(train, given_last=self.order == 2)

    def score(self, pieces: Sequence[np.ndarray]) -> np.ndarray:  # type: ignore[override]
        """-ln P of each frame of all pieces, in nats."""
        return key_nll(self.p, pieces)

    def hits(self, pieces: Sequence[np.ndarray]) -> tuple[int, int]:  # type: ignore[override]
        said, sounds = key_chances(self.p, pieces) > 0.5, np.concatenate(list(pieces)) > 0
        return int((said & sounds).sum()), int((said | sounds).sum())

    def distribution(self, history: np.ndarray) -> np.ndarray:
        """(V,): the probability that each key sounds after the frames `history` (N, V)."""
        last = history[-1] > 0 if len(history) else np.zeros(self.vocab_size, dtype=bool)
        return np.where(last, self.p[1], self.p[0])

    @property
    def num_parameters(self) -> int:
        return self.order * self.vocab_size

    def state(self) -> State:
        return {"p": self.p}

    def load_state(self, state: Mapping[str, np.ndarray | int | float]) -> None:
        p = np.asarray(state["p"])
        if p.shape != self.p.shape:
            raise ValueError(f"p has the shape {p.shape}, this model {self.p.shape}")
        if p.dtype.kind != "f" or not ((p > 0) & (p < 1)).all():
            raise ValueError("p holds something else than probabilities between 0 and 1: fit the model anew")
        self.p = p
