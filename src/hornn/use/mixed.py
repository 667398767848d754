"""A mixture of trained models as a run of its own (`model=mixture`)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hornn.baselines.cache import require_lengths
from hornn.baselines.counts import FittedModel
from hornn.data.base import Data
from hornn.data.text import TextData
from hornn.use.checkpoints import load_ready
from hornn.use.corpora import require_one_text
from hornn.use.scorers import Mixture


class MixtureModel(FittedModel):
    """P(w) = sum_k lambda_k P_k(w): trained models, and unigram caches of the last tokens, interpolated linearly.

    `init_from` names the checkpoints of the models. `fit` chooses the lambda_k by EM on the validation text; no model
    is trained any further. lengths: tokens in each cache, a model of the mixture like the others. Source: Jelinek &
    Mercer 1980.
    Raises ValueError for a length below 1.
    """

    dtype, backend = "fp32", "auto"

    def __init__(self, vocab_size: int, eos_id: int | None, lengths: Sequence[int] = ()) -> None:
        super().__init__(vocab_size, eos_id)
        self.lengths = require_lengths("lengths", lengths) if lengths else ()

    def open(self, paths: Sequence[str], data: Data) -> None:
        """Load the models. Raises what `load` raises, and ValueError unless they are of the text of `data`, and two."""
        if (
            not paths
            or len({Path(path).resolve() for path in paths}) < len(paths)
            or len(paths) + len(self.lengths) < 2
        ):
            raise ValueError(
                f"model=mixture mixes two models or more, or one and a cache, got {list(paths)}: "
                "give init_from=[RUN/best.ckpt,RUN/best.ckpt], each once"
            )
        if not isinstance(data, TextData):
            raise ValueError(f"model=mixture mixes models of text, and data={data.name} is none")
        self.mixture = Mixture(load_ready([Path(path) for path in paths], "cpu", 100, "fp32"), self.lengths)
        require_one_text(self.mixture.scorers, data)

    def fit(self, train: np.ndarray, valid: np.ndarray) -> None:
        self.mixture.fit(valid)

    def score(self, ids: np.ndarray) -> np.ndarray:
        return self.mixture.score(ids)

    @property
    def num_parameters(self) -> int:
        return self.mixture.num_parameters

    @property
    def notes(self) -> list[str]:
        weights = zip(self.mixture.weights, self.mixture.parts, strict=True)
        return [f"weight {weight:.3f}: {part}" for weight, part in weights]
