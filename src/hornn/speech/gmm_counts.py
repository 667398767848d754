"""The Gaussian mixtures by themselves: what a network of speech has to beat."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hornn.baselines.counts import CountModel, State
from hornn.speech.features import CEPSTRA


class Utterances(NamedTuple):
    """A split as Gaussian mixtures read it: cepstra (N, 39) and states (N,) of each utterance.

    model: the arrays of the mixtures that found the states (`hornn.speech.gmm.Gmm.arrays`).
    """

    cepstra: list[np.ndarray]
    states: list[np.ndarray]
    model: dict[str, np.ndarray]


class GmmCounts(CountModel):
    """The mixtures that aligned the training utterances, read as probabilities of the states of a frame.

        P(s | x) = p(s) p(x | s) / sum_s' p(s') p(x | s'),   p(x | s) = sum_k w_sk N(x; mu_sk, diag(v_sk))

    x: 39 cepstra. p(s): the share of state s in training, one added to each count. Each frame is taken by itself.
    Source: the poster's GMM systems are not described; this is the usual monophone start of a hybrid system.
    """

    predicts = "states"

    def __init__(self, vocab_size: int, eos_id: int | None = None) -> None:
        super().__init__(vocab_size, eos_id)
        self.arrays: dict[str, np.ndarray] = {}

    def fit(self, train: Utterances, valid: Utterances) -> None:  # type: ignore[override]
        counts = np.bincount(np.concatenate(train.states), minlength=self.vocab_size) + 1.0
        self.arrays = {**train.model, "prior": counts / counts.sum()}

    def log_probs(self, split: Utterances) -> list[np.ndarray]:
        """ln P(s | x) of each frame of each utterance, (N, V)."""
        if not self.arrays:
            raise ValueError("these mixtures are not fitted yet: call fit() or load_state()")
        joint = [
            self.log_densities(x.astype(np.float64)) + np.log(self.arrays["prior"]) for x in split.cepstra
        ]
        return [each - np.logaddexp.reduce(each, axis=1, keepdims=True) for each in joint]

    def log_densities(self, x: np.ndarray) -> np.ndarray:
        """ln p(x | s) of frames (N, 39), (N, V)."""
        means, precisions, sizes = (self.arrays[key] for key in ("means", "inverse_variances", "sizes"))
        constant = np.log(self.arrays["weights"]) + 0.5 * (
            np.log(precisions).sum(1)
            - means.shape[1] * math.log(2 * math.pi)
            - (means**2 * precisions).sum(1)
        )
        each = constant + x @ (means * precisions).T - 0.5 * x**2 @ precisions.T
        found: np.ndarray = np.logaddexp.reduceat(each, np.cumsum(sizes) - sizes, axis=1)
        return found

    def score(self, split: Utterances) -> np.ndarray:  # type: ignore[override]
        """-ln P(s | x) of each frame of all utterances, in nats."""
        return np.concatenate(
            [
                -each[np.arange(len(states)), states]
                for each, states in zip(self.log_probs(split), split.states, strict=True)
            ]
        )

    def hits(self, split: Utterances) -> tuple[int, int]:  # type: ignore[override]
        likeliest = np.concatenate([each.argmax(1) for each in self.log_probs(split)])
        return int((likeliest == np.concatenate(split.states)).sum()), len(likeliest)

    def distribution(self, history: np.ndarray) -> np.ndarray:
        raise ValueError("these mixtures read one frame of sound and foretell nothing")

    @property
    def num_parameters(self) -> int:
        return sum(array.size for name, array in self.arrays.items() if name != "sizes")

    def state(self) -> State:
        return dict(self.arrays)

    def load_state(self, state: Mapping[str, np.ndarray | int | float]) -> None:
        arrays = {name: np.asarray(value) for name, value in state.items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        sizes, number = arrays.get("sizes", np.zeros(0)), np.size(arrays.get("weights", ()))
        wanted = {
            "sizes": (self.vocab_size,),
            "weights": (number,),
            "means": (number, CEPSTRA),
            "inverse_variances": (number, CEPSTRA),
            "prior": (self.vocab_size,),
            "stay": (self.vocab_size,),
        }
        whole = shapes == wanted and sizes.dtype.kind == "i"
        if not whole or not 1 <= sizes.min() <= sizes.max() <= number or sizes.sum() != number:
            raise ValueError(f"these mixtures are not of {self.vocab_size} states: train them anew")
        self.arrays = arrays
