"""The feed-forward language model of Bengio et al. 2003: y = b + W x + U tanh(d + H x), without the output layer."""

from collections.abc import Callable

import numpy as np

from reference.activations import Array


def nnlm(
    x: Array,
    state: tuple[Array],
    f: Callable[[Array], Array],
    H: Array,
    d: Array | float = 0.0,
    *,
    direct: bool = False,
) -> tuple[Array, tuple[Array]]:
    """x = (C(w_{t-1}), ..., C(w_{t-n+1})), y_t = f(d + H x), or [f(d + H x), x]. State: the n - 2 words before, oldest
    first (n - 2, B, I)."""
    T, B, width = x.shape
    (before,) = state
    context = H.shape[1] // width
    y = np.zeros((T, B, H.shape[0] + (context * width if direct else 0)))
    after = np.zeros_like(before)
    for column in range(B):
        text = [*before[:, column], *x[:, column]]
        for t in range(T):
            newest = t + len(before)
            seen = np.concatenate([text[newest - k] for k in range(context)])
            h = f(d + H @ seen)
            y[t, column] = np.concatenate([h, seen]) if direct else h
        for k in range(len(before)):
            after[k, column] = text[T + k]
    return y, (after,)
