"""Random texts by Zipf's law: the k-th most frequent word occurs 1 / k times as often as the first."""

import numpy as np


def zipf(seed: int, size: int, vocab_size: int) -> np.ndarray:
    """The ids (size,) of a text; the id k has a probability proportional to 1 / (k + 1)."""
    p = 1 / np.arange(1, vocab_size + 1)
    return np.random.default_rng(seed).choice(vocab_size, size, p=p / p.sum())
