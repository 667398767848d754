"""FOFE-FNN of Zhang et al. 2015, from one-hot words: the code z_t = alpha z_{t-1} + e_t, a projection, ReLU layers."""

from collections.abc import Callable

import numpy as np

from reference.activations import Array


def fofe_code(words: list[int], vocab_size: int, alpha: float) -> Array:
    """The FOFE code of a whole history: z_t = alpha z_{t-1} + e_t from z_0 = 0."""
    z = np.zeros(vocab_size)
    for word in words:
        z = alpha * z
        z[word] += 1.0
    return z


def fofe_fnn(
    words: list[int],
    E: Array,
    f: Callable[[Array], Array],
    W: list[Array],
    b: list[Array],
    *,
    alpha: float,
    order: int,
) -> Array:
    """(T, H): for each t the layers over the projected codes of words 1..t, 1..t-1, .., 1..t-order+1; E (V, I)."""
    rows = []
    for t in range(1, len(words) + 1):
        codes = [fofe_code(words[: max(t - lag, 0)], len(E), alpha) @ E for lag in range(order)]
        a = np.concatenate(codes)
        for W_l, b_l in zip(W, b, strict=True):
            a = f(W_l @ a + b_l)
        rows.append(a)
    return np.array(rows)
