"""Deep recurrent networks, section 3.3 of Pascanu, Gulcehre, Cho and Bengio, arXiv 1312.6026.

Layers and levels are numbered from 1 as in the paper: lists of matrices are read as M[l - 1].
"""

from collections.abc import Callable, Sequence

import numpy as np

from reference.activations import Array

Activation = Callable[[Array], Array]


def maxout(a: Array, pieces: int) -> Array:
    """The largest piece of every unit; piece i of unit j is row i * units + j of the pre-activations."""
    units = len(a) // pieces
    y = np.zeros(units)
    for j in range(units):
        y[j] = max(a[i * units + j] for i in range(pieces))
    return y


def lp(a: Array, pieces: int, p: float | Array) -> Array:
    """(1/k sum_i |a_i|^p)^(1/p) over the k pieces of every unit, p one number or one for each unit."""
    units = len(a) // pieces
    p = np.broadcast_to(p, units)
    y = np.zeros(units)
    for j in range(units):
        total = 0.0
        for i in range(pieces):
            total += abs(a[i * units + j]) ** p[j]
        y[j] = (total / pieces) ** (1.0 / p[j])
    return y


def deep_rnn(
    x: Array,
    state: tuple[Array],
    f: Sequence[Activation],
    g: Sequence[Activation],
    W: Sequence[Array],
    U: Sequence[Array | None],
    S: Sequence[Array | None],
    V: Sequence[Array] = (),
    b: Sequence[Array | float] | None = None,
    c: Sequence[Array | float] | None = None,
) -> tuple[Array, tuple[Array]]:
    """Deep transition with intermediate layers f[:-1], deep output with intermediate layers g. State: h (B, H).

    z_0 = h_{t-1},  z_l = f_l(W_l z_{l-1} + U_l x_t + S_l h_{t-1} + b_l),  h_t = z_L
    o_0 = h_t,      o_m = g_m(V_m o_{m-1} + c_m),                          y_t = the last o

    U_l or S_l is None where there is no such connection.
    """
    T, B, _ = x.shape
    (h_before,) = state
    b = [0.0] * len(W) if b is None else b
    c = [0.0] * len(V) if c is None else c
    y = [[None] * B for _ in range(T)]
    h_after = np.zeros_like(h_before)
    for column in range(B):
        h = h_before[column]
        for t in range(T):
            z = h
            for layer in range(1, len(W) + 1):
                a = W[layer - 1] @ z + b[layer - 1]
                if U[layer - 1] is not None:
                    a = a + U[layer - 1] @ x[t, column]
                if S[layer - 1] is not None:
                    a = a + S[layer - 1] @ h
                z = f[layer - 1](a)
            h = z
            o = h
            for m in range(1, len(V) + 1):
                o = g[m - 1](V[m - 1] @ o + c[m - 1])
            y[t][column] = o
        h_after[column] = h
    return np.array(y), (h_after,)


def stacked_rnn(
    x: Array,
    state: tuple[Array],
    f: Activation,
    W: Sequence[Array],
    U: Sequence[Array],
    X: Sequence[Array] | None = None,
    b: Array | None = None,
    all_levels: bool = False,
) -> tuple[Array, tuple[Array]]:
    """h^l_t = f(W^l h^l_{t-1} + U^l h^{l-1}_t + X^l x_t + b^l), h^0_t = x_t. State: h (L, B, H).

    X[l - 2] is X^l, from the second level on. y_t is the top level, or all of them side by side.
    """
    T, B, _ = x.shape
    (h_before,) = state
    L, _, H = h_before.shape
    y = np.zeros((T, B, L * H if all_levels else H))
    h_after = np.zeros_like(h_before)
    for column in range(B):
        h = {(level, -1): h_before[level - 1, column] for level in range(1, L + 1)}  # h[l, t] is h^l_t
        for t in range(T):
            h[0, t] = x[t, column]
            for level in range(1, L + 1):
                a = W[level - 1] @ h[level, t - 1] + U[level - 1] @ h[level - 1, t]
                if X is not None and level > 1:
                    a = a + X[level - 2] @ x[t, column]
                if b is not None:
                    a = a + b[level - 1]
                h[level, t] = f(a)
            levels = [h[level, t] for level in range(1, L + 1)]
            y[t, column] = np.concatenate(levels) if all_levels else levels[-1]
        for level in range(1, L + 1):
            h_after[level - 1, column] = h[level, T - 1]
    return y, (h_after,)
