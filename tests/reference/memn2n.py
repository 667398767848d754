"""The end-to-end memory network for words (Sukhbaatar et al. 2015), layer-wise tying, one prediction at a time."""

import numpy as np

from reference.activations import Array


def memn2n(
    words: list[int],
    A: Array,
    C: Array,
    T_A: Array,
    T_C: Array,
    H: Array,
    *,
    hops: int,
    linear_size: int,
    linear: bool = False,
) -> Array:
    """(T, d): what follows each word. A and C (V, d) embed a word, T_A and T_C (M, d) its place, the oldest's first."""
    M, d = T_A.shape
    rows = []
    for t in range(1, len(words) + 1):
        memory = words[max(0, t - M) : t]
        places = range(M - len(memory), M)
        keys = [A[word] + T_A[place] for word, place in zip(memory, places, strict=True)]
        values = [C[word] + T_C[place] for word, place in zip(memory, places, strict=True)]
        u = np.full(d, 0.1)
        for _ in range(hops):
            weights = np.array([u @ key for key in keys])
            if not linear:
                weights = np.exp(weights) / np.exp(weights).sum()
            o = np.zeros(d)
            for weight, value in zip(weights, values, strict=True):
                o = o + weight * value
            u = H @ u + o
            for unit in range(linear_size, d):
                u[unit] = max(u[unit], 0.0)
        rows.append(u)
    return np.array(rows)
