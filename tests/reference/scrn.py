"""The simple recurrent network and the SCRN, equations (1) and (4) to (8) of Mikolov et al., arXiv 1412.7753.

Matrices are (out, in), so the paper's A, B and P are transposed. Equation (4) prints B s_t for B x_t.
"""

import numpy as np

from reference.activations import Array, sigmoid


def srn(x: Array, state: tuple[Array], R: Array, A: Array | None = None) -> tuple[Array, tuple[Array]]:
    """Eq. (1): h_t = sigmoid(A x_t + R h_{t-1}), y_t = h_t. Without A, x_t is A x_t. State: h (B, H)."""
    T, B, _ = x.shape
    H = R.shape[0]
    (h_before,) = state
    if A is None:
        A = np.eye(H)
    y = np.zeros((T, B, H))
    h_after = np.zeros((B, H))
    for column in range(B):
        h = h_before[column]
        for t in range(T):
            h = sigmoid(A @ x[t, column] + R @ h)
            y[t, column] = h
        h_after[column] = h
    return y, (h_after,)


def scrn(
    x: Array,
    state: tuple[Array, Array],
    P: Array,
    R: Array,
    A: Array | None = None,
    B: Array | None = None,
    beta: Array | None = None,
    *,
    alpha: float,
    context_input: str,
) -> tuple[Array, tuple[Array, Array]]:
    """Eqs. (4)-(6) and (8). Without A and B, x_t is [A x_t, B x_t]. State: h (B, H), s (B, C).

    s_t = (I - Q) B x_t + Q s_{t-1},   Q = diag(alpha), or diag(sigmoid(logit(alpha) + beta)) with beta
    h_t = sigmoid(P s_t + A x_t + R h_{t-1}), with s_{t-1} for s_t where the context input is the previous one
    y_t = [h_t, s_t]
    """
    T, columns, _ = x.shape
    H, C = P.shape
    h_before, s_before = state
    if A is None or B is None:
        A, B = np.eye(H + C)[:H], np.eye(H + C)[H:]
    q = np.full(C, alpha) if beta is None else sigmoid(np.log(alpha / (1.0 - alpha)) + beta)
    Q, identity = np.diag(q), np.eye(C)
    y = np.zeros((T, columns, H + C))
    h_after, s_after = np.zeros((columns, H)), np.zeros((columns, C))
    for column in range(columns):
        h, s = h_before[column], s_before[column]
        for t in range(T):
            x_t = x[t, column]
            s_old = s
            s = (identity - Q) @ (B @ x_t) + Q @ s_old
            seen = {"current": s, "previous": s_old}[context_input]
            h = sigmoid(P @ seen + A @ x_t + R @ h)
            y[t, column, :H] = h
            y[t, column, H:] = s
        h_after[column], s_after[column] = h, s
    return y, (h_after, s_after)
