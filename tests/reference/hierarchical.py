"""Levels of units with delayed feedback, after El Hihi and Bengio (1996)."""

from collections.abc import Callable, Sequence

import numpy as np

from reference.activations import Array


def hierarchical(
    x: Array,
    state: tuple[Array],
    f: Callable[[Array], Array],
    delays: Sequence[int],
    W_in: Array,
    W_h: Array,
    W_up: Array | None = None,
    b: Array | None = None,
) -> tuple[Array, tuple[Array]]:
    """h^1_t = f(W_in x_t + W_h^1 h^1_{t-d_1} + b^1), h^l_t = f(W_up^l h^{l-1}_t + W_h^l h^l_{t-d_l} + b^l).

    State: history (d_L, B, H), history[n-1] = [h^1_{t-n}, ..., h^L_{t-n}].
    """
    T, B, _ = x.shape
    (history_before,) = state
    K, _, H = history_before.shape
    L = len(delays)
    width = H // L
    if b is None:
        b = np.zeros((L, width))
    y = np.zeros((T, B, H))
    history_after = np.zeros((K, B, H))
    for column in range(B):
        h = {
            (level, -n): history_before[n - 1, column, level * width : (level + 1) * width]
            for level in range(L)
            for n in range(1, K + 1)
        }
        for t in range(T):
            for level in range(L):
                below = (
                    W_in @ x[t, column] if W_up is None or level == 0 else W_up[level - 1] @ h[level - 1, t]
                )
                h[level, t] = f(below + W_h[level] @ h[level, t - delays[level]] + b[level])
            y[t, column] = np.concatenate([h[level, t] for level in range(L)])
        for n in range(1, K + 1):
            history_after[n - 1, column] = np.concatenate([h[level, T - n] for level in range(L)])
    return y, (history_after,)
