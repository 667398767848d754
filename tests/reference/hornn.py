"""The higher-order recurrent networks, equations (3) to (7) of Soltani and Jiang, arXiv 1605.00064.

State of all four: history (K, B, H), history[n-1] = h_{t-n}, newest first. In the loops below h is keyed by
time: h[0] is the first state that the chunk computes, h[-1] the newest one it was given, so h[t - n] is the
paper's h_{t-n} to the letter.
"""

from collections.abc import Callable

import numpy as np

from reference.activations import Array, sigmoid

Activation = Callable[[Array], Array]
Feedback = Callable[[Array, dict[int, Array], int], Array]


def _unroll(
    x: Array, state: tuple[Array], f: Activation, W_in: Array, b: Array | float, feedback: Feedback
) -> tuple[Array, tuple[Array]]:
    """h_t = f(W_in x_t + b + feedback), with feedback(x_t, h, t) the pooled signal of the earlier states."""
    T, B, _ = x.shape
    (history_before,) = state
    K, _, H = history_before.shape
    y = np.zeros((T, B, H))
    history_after = np.zeros((K, B, H))
    for column in range(B):
        h = {-n: history_before[n - 1, column] for n in range(1, K + 1)}
        for t in range(T):
            x_t = x[t, column]
            h[t] = f(W_in @ x_t + b + feedback(x_t, h, t))
            y[t, column] = h[t]
        for n in range(1, K + 1):
            history_after[n - 1, column] = h[T - n]
    return y, (history_after,)


def hornn(
    x: Array, state: tuple[Array], f: Activation, W_in: Array, W_h: Array, b: Array | float = 0.0
) -> tuple[Array, tuple[Array]]:
    """Eq. (3): h_t = f(W_in x_t + sum_n W_hn h_{t-n}), W_hn = W_h[n-1]."""

    def feedback(x_t: Array, h: dict[int, Array], t: int) -> Array:
        total = np.zeros(len(W_in))
        for n in range(1, len(W_h) + 1):
            total = total + W_h[n - 1] @ h[t - n]
        return total

    return _unroll(x, state, f, W_in, b, feedback)


def hornn_max(
    x: Array, state: tuple[Array], f: Activation, W_in: Array, W_h: Array, b: Array | float = 0.0
) -> tuple[Array, tuple[Array]]:
    """Eq. (4): h_t = f(W_in x_t + max_n (W_hn h_{t-n})), the maximum element by element.

    All K taps take part at every step: those from before the text are W_hn 0 = 0, not left out.
    """

    def feedback(x_t: Array, h: dict[int, Array], t: int) -> Array:
        largest = W_h[0] @ h[t - 1]
        for n in range(2, len(W_h) + 1):
            signal = W_h[n - 1] @ h[t - n]
            for unit in range(len(largest)):
                if signal[unit] > largest[unit]:
                    largest[unit] = signal[unit]
        return largest

    return _unroll(x, state, f, W_in, b, feedback)


def hornn_fofe(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W_in: Array,
    W_h: Array,
    b: Array | float = 0.0,
    *,
    alpha: float,
) -> tuple[Array, tuple[Array]]:
    """Eq. (5): h_t = f(W_in x_t + sum_n alpha^n W_hn h_{t-n}); the newest tap has alpha^1, not alpha^0."""

    def feedback(x_t: Array, h: dict[int, Array], t: int) -> Array:
        total = np.zeros(len(W_in))
        for n in range(1, len(W_h) + 1):
            total = total + alpha**n * (W_h[n - 1] @ h[t - n])
        return total

    return _unroll(x, state, f, W_in, b, feedback)


def hornn_gated(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W_in: Array,
    W_h: Array,
    W_g1: Array,
    W_g2: Array,
    b: Array | float = 0.0,
    b_g: Array | None = None,
) -> tuple[Array, tuple[Array]]:
    """Eqs. (6) and (7), one gate vector per tap, W^g_1n = W_g1[n-1] (H, I), W^g_2n = W_g2[n-1] (H, H).

    h_t = f(W_in x_t + sum_n r_n * (W_hn h_{t-n})),   r_n = sigmoid(W^g_1n x_t + W^g_2n h_{t-n} + b_gn)
    """
    if b_g is None:
        b_g = np.zeros((len(W_h), len(W_in)))

    def feedback(x_t: Array, h: dict[int, Array], t: int) -> Array:
        total = np.zeros(len(W_in))
        for n in range(1, len(W_h) + 1):
            r_n = sigmoid(W_g1[n - 1] @ x_t + W_g2[n - 1] @ h[t - n] + b_g[n - 1])
            total = total + r_n * (W_h[n - 1] @ h[t - n])
        return total

    return _unroll(x, state, f, W_in, b, feedback)
