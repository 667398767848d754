"""The acoustic networks of Zhang and Woodland's poster (ICASSP 2018), and the projected LSTM of Sak et al. 2014.

In the loops h is keyed by time: h[0] is the first state that the chunk computes, h[-1] the newest one it was
given, so h[t - n] is the poster's h_{t-n} to the letter. So is p, the projected states P h_t.
"""

from collections.abc import Callable

import numpy as np

from reference.activations import Array, sigmoid

Activation = Callable[[Array], Array]
Formula = Callable[[Array, dict[int, Array], int], Array]


def _past(history: Array, column: int) -> dict[int, Array]:
    """The given states (K, B, W) of one column by time: -1, -2, ..., -K."""
    return {-k: history[k - 1, column] for k in range(1, len(history) + 1)}


def _unroll(x: Array, state: tuple[Array], formula: Formula) -> tuple[Array, tuple[Array]]:
    """h_t = formula(x_t, h, t), y_t = h_t. State: history (K, B, H), newest first."""
    T, B, _ = x.shape
    (history_before,) = state
    K, _, H = history_before.shape
    y = np.zeros((T, B, H))
    history_after = np.zeros((K, B, H))
    for column in range(B):
        h = _past(history_before, column)
        for t in range(T):
            h[t] = formula(x[t, column], h, t)
            y[t, column] = h[t]
        for k in range(1, K + 1):
            history_after[k - 1, column] = h[T - k]
    return y, (history_after,)


def hornn_relu(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W_in: Array,
    U_1: Array,
    U_n: Array,
    b: Array | float = 0.0,
    *,
    n: int,
) -> tuple[Array, tuple[Array]]:
    """h_t = f(W x_t + U_1 h_{t-1} + U_n h_{t-n} + b)."""
    return _unroll(x, state, lambda x_t, h, t: f(W_in @ x_t + U_1 @ h[t - 1] + U_n @ h[t - n] + b))


def hornn_sigmoid(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W_in: Array,
    U_1: Array,
    U_n: Array,
    b: Array | float = 0.0,
    *,
    n: int,
    m: int,
) -> tuple[Array, tuple[Array]]:
    """h_t = f(W x_t + U_1 h_{t-1} + U_n h_{t-n} + h_{t-m} + b)."""
    return _unroll(x, state, lambda x_t, h, t: f(W_in @ x_t + U_1 @ h[t - 1] + U_n @ h[t - n] + h[t - m] + b))


def resrnn(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W_in: Array,
    U_d1: Array,
    U_d2: Array,
    b: Array | float = 0.0,
    *,
    m: int,
) -> tuple[Array, tuple[Array]]:
    """h_t = f(U_d2 f(W x_t + U_d1 h_{t-1} + b) + h_{t-m})."""
    return _unroll(x, state, lambda x_t, h, t: f(U_d2 @ f(W_in @ x_t + U_d1 @ h[t - 1] + b) + h[t - m]))


def hornnp_relu(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W_in: Array,
    U_p1: Array,
    U_pn: Array,
    P: Array,
    b: Array | float = 0.0,
    *,
    n: int,
) -> tuple[Array, tuple[Array]]:
    """h_t = f(W x_t + U_p1 P h_{t-1} + U_pn P h_{t-n} + b), y_t = P h_t. State: P h (n, B, P)."""
    T, B, _ = x.shape
    (projected_before,) = state
    y = np.zeros((T, B, len(P)))
    projected_after = np.zeros_like(projected_before)
    for column in range(B):
        p = _past(projected_before, column)
        for t in range(T):
            h_t = f(W_in @ x[t, column] + U_p1 @ p[t - 1] + U_pn @ p[t - n] + b)
            p[t] = P @ h_t
            y[t, column] = p[t]
        for k in range(1, n + 1):
            projected_after[k - 1, column] = p[T - k]
    return y, (projected_after,)


def hornnp_sigmoid(
    x: Array,
    state: tuple[Array, Array],
    f: Activation,
    W_in: Array,
    U_p1: Array,
    U_pn: Array,
    P: Array,
    b: Array | float = 0.0,
    *,
    n: int,
    m: int,
) -> tuple[Array, tuple[Array, Array]]:
    """h_t = f(W x_t + U_p1 P h_{t-1} + U_pn P h_{t-n} + h_{t-m} + b), y_t = P h_t.

    State: P h (n, B, P) and h (m, B, H).
    """
    T, B, _ = x.shape
    projected_before, history_before = state
    y = np.zeros((T, B, len(P)))
    projected_after, history_after = np.zeros_like(projected_before), np.zeros_like(history_before)
    for column in range(B):
        p, h = _past(projected_before, column), _past(history_before, column)
        for t in range(T):
            h[t] = f(W_in @ x[t, column] + U_p1 @ p[t - 1] + U_pn @ p[t - n] + h[t - m] + b)
            p[t] = P @ h[t]
            y[t, column] = p[t]
        for k in range(1, n + 1):
            projected_after[k - 1, column] = p[T - k]
        for k in range(1, m + 1):
            history_after[k - 1, column] = h[T - k]
    return y, (projected_after, history_after)


def lstmp(
    x: Array, state: tuple[Array, Array], W_in: Array, W_h: Array, P: Array, b: Array | None = None
) -> tuple[Array, tuple[Array, Array]]:
    """The LSTM without peepholes whose gates see r_{t-1}, the projection of its output. State: r, c.

    i, f, o = sigmoid(W_x x_t + W_r r_{t-1} + b), g = tanh(...), blocks of H rows in the order i, f, g, o
    c_t = f c_{t-1} + i g,   r_t = P (o tanh(c_t)),   y_t = r_t
    """
    T, B, _ = x.shape
    H = P.shape[1]
    if b is None:
        b = np.zeros(4 * H)
    r_before, c_before = state
    y = np.zeros((T, B, len(P)))
    r_after, c_after = np.zeros_like(r_before), np.zeros_like(c_before)
    for column in range(B):
        r, c = r_before[column], c_before[column]
        for t in range(T):
            a = W_in @ x[t, column] + W_h @ r + b
            i, f, g, o = sigmoid(a[:H]), sigmoid(a[H : 2 * H]), np.tanh(a[2 * H : 3 * H]), sigmoid(a[3 * H :])
            c = f * c + i * g
            r = P @ (o * np.tanh(c))
            y[t, column] = r
        r_after[column], c_after[column] = r, c
    return y, (r_after, c_after)
