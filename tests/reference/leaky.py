"""The recurrent network of leaky integrators."""

from collections.abc import Callable

import numpy as np

from reference.activations import Array


def leaky_rnn(
    x: Array,
    state: tuple[Array],
    f: Callable[[Array], Array],
    leak_rate: float,
    W_in: Array,
    W_h: Array,
    b: Array | float = 0.0,
) -> tuple[Array, tuple[Array]]:
    """h_t = (1 - a) h_{t-1} + a f(W_in x_t + W_h h_{t-1} + b), a the leak rate. State: h (B, H)."""
    T, B, _ = x.shape
    (h_before,) = state
    y = np.zeros((T, B, len(W_in)))
    h_after = np.zeros((B, len(W_in)))
    for column in range(B):
        h = h_before[column]
        for t in range(T):
            h = (1.0 - leak_rate) * h + leak_rate * f(W_in @ x[t, column] + W_h @ h + b)
            y[t, column] = h
        h_after[column] = h
    return y, (h_after,)
