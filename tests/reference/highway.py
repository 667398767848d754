"""The recurrent network whose transition is a highway network (Srivastava et al. 2015)."""

from collections.abc import Callable

import numpy as np

from reference.activations import Array, sigmoid


def highway_rnn(
    x: Array,
    state: tuple[Array],
    f: Callable[[Array], Array],
    gate_bias: float,
    W_in: Array,
    W_h: Array,
    b: Array | None = None,
) -> tuple[Array, tuple[Array]]:
    """Each highway layer makes s = g c + (1 - g) s from s = h_{t-1}, with candidate c and gate g

        c = f(W_c s + b_c (+ W_xc x_t)),   g = sigmoid(W_g s + b_g + gate_bias (+ W_xg x_t))

    where x_t enters the first layer alone; h_t is the last s. Rows of W_in (2H, I), W_h (L, 2H, H) and
    b (L, 2H): candidate, then gate.
    """
    T, B, _ = x.shape
    H = W_h.shape[-1]
    if b is None:
        b = np.zeros((len(W_h), 2 * H))
    (h_before,) = state
    y = np.zeros((T, B, H))
    h_after = np.zeros((B, H))
    for column in range(B):
        s = h_before[column]
        for t in range(T):
            for layer in range(len(W_h)):
                a_c = W_h[layer, :H] @ s + b[layer, :H]
                a_g = W_h[layer, H:] @ s + b[layer, H:] + gate_bias
                if layer == 0:
                    a_c = a_c + W_in[:H] @ x[t, column]
                    a_g = a_g + W_in[H:] @ x[t, column]
                g = sigmoid(a_g)
                s = g * f(a_c) + (1.0 - g) * s
            y[t, column] = s
        h_after[column] = s
    return y, (h_after,)
