"""The gated-feedback recurrent network of Chung et al. (2015) with simple units."""

from collections.abc import Callable, Sequence

import numpy as np

from reference.activations import Array, sigmoid


def gated_feedback_rnn(
    x: Array,
    state: tuple[Array],
    f: Callable[[Array], Array],
    W_in: Sequence[Array],
    W_g1: Sequence[Array],
    W_h: Array,
    W_g2: Array,
    b: Array | None = None,
) -> tuple[Array, tuple[Array]]:
    """h^j_t = f(W^j h^{j-1}_t + sum_i g^{i->j} U^{i->j} h^i_{t-1} + b^j), h^0_t = x_t, y_t = h^L_t, with one
    number g^{i->j} = sigmoid(w_g^{i->j} . h^{j-1}_t + u_g^{i->j} . h*) for each pair of layers, h* all layers'
    last states side by side.

    W_in[j] = W^j, W_g1[j][i] = w_g^{i->j}, W_h[j, i] = U^{i->j}, W_g2[j, i] = u_g^{i->j}. State: h (L, B, H).
    """
    T, B, _ = x.shape
    (h_before,) = state
    L, _, H = h_before.shape
    if b is None:
        b = np.zeros((L, H))
    y = np.zeros((T, B, H))
    h_after = np.zeros((L, B, H))
    for column in range(B):
        last = [h_before[layer, column] for layer in range(L)]
        for t in range(T):
            everything = np.concatenate(last)
            below = x[t, column]
            new = []
            for j in range(L):
                a = W_in[j] @ below + b[j]
                for i in range(L):
                    gate = sigmoid(W_g1[j][i] @ below + W_g2[j, i] @ everything)
                    a = a + gate * (W_h[j, i] @ last[i])
                below = f(a)
                new.append(below)
            last = new
            y[t, column] = last[-1]
        for layer in range(L):
            h_after[layer, column] = last[layer]
    return y, (h_after,)
