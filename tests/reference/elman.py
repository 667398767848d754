"""The first-order recurrent network."""

from collections.abc import Callable

import numpy as np

from reference.activations import Array


def rnn(
    x: Array,
    state: tuple[Array],
    f: Callable[[Array], Array],
    W_in: Array,
    W_h: Array,
    b: Array | float = 0.0,
) -> tuple[Array, tuple[Array]]:
    """h_t = f(W_in x_t + W_h h_{t-1} + b), y_t = h_t (HORNN paper, eq. 1, with a bias). State: h (B, H)."""
    T, B, _ = x.shape
    H = W_in.shape[0]
    (h_before,) = state
    y = np.zeros((T, B, H))
    h_after = np.zeros((B, H))
    for column in range(B):
        h = h_before[column]
        for t in range(T):
            h = f(W_in @ x[t, column] + W_h @ h + b)
            y[t, column] = h
        h_after[column] = h
    return y, (h_after,)
