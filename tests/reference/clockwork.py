"""The clockwork recurrent network of Koutnik et al. (2014)."""

from collections.abc import Callable, Sequence

import numpy as np

from reference.activations import Array


def clockwork(
    x: Array,
    h_before: Array,
    t_before: int,
    f: Callable[[Array], Array],
    periods: Sequence[int],
    W_in: Array,
    W_h: Sequence[Array],
    b: Array | None = None,
) -> tuple[Array, Array]:
    """Module i computes h^i_t = f(W_in^i x_t + sum_{j >= i} W_h^ij h^j_{t-1} + b^i) at each t that its period
    divides and keeps its state at any other; t counts from 0, `t_before` is that of the first x.

    W_h[i] holds W_h^ij side by side for j = i, i + 1, ... Returns y (T, B, H) and h (B, H).
    """
    T, B, _ = x.shape
    H = len(W_in)
    width = H // len(periods)
    if b is None:
        b = np.zeros(H)
    y = np.zeros((T, B, H))
    h_after = np.zeros((B, H))
    for column in range(B):
        h = [h_before[column, i * width : (i + 1) * width] for i in range(len(periods))]
        for step in range(T):
            new = []
            for i, period in enumerate(periods):
                if (t_before + step) % period == 0:
                    units = slice(i * width, (i + 1) * width)
                    a = W_in[units] @ x[step, column] + b[units]
                    for j in range(i, len(periods)):
                        a = a + W_h[i][:, (j - i) * width : (j - i + 1) * width] @ h[j]
                    new.append(f(a))
                else:
                    new.append(h[i])
            h = new
            y[step, column] = np.concatenate(h)
        h_after[column] = np.concatenate(h)
    return y, h_after
