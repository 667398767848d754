"""The gated recurrent unit."""

import numpy as np

from reference.activations import Array, sigmoid


def gru(
    x: Array,
    state: tuple[Array],
    W_in: Array,
    W_h: Array,
    b: Array | None = None,
    b_n: Array | float = 0.0,
    reset_after: bool = True,
) -> tuple[Array, tuple[Array]]:
    """The GRU as torch.nn.GRU documents it: the reset gate multiplies the product. State: h (B, H).

    Without `reset_after` as in Soltani's thesis, section 3.2.3: it multiplies the state.

    r = sigmoid(W_ir x_t + W_hr h_{t-1} + b_r)        reset gate
    z = sigmoid(W_iz x_t + W_hz h_{t-1} + b_z)        update gate
    n = tanh(W_in x_t + b_i + r (W_hn h_{t-1} + b_n)) candidate
    n = tanh(W_in x_t + b_i + W_hn (r h_{t-1}))       without reset_after
    h_t = (1 - z) n + z h_{t-1},   y_t = h_t

    The three blocks of H rows in W_in (3H, I), W_h (3H, H) and b (3H) are r, z, n; b_n (H) is torch's b_hn,
    and torch's b_hr and b_hz are part of b.
    """
    T, B, _ = x.shape
    H = W_in.shape[0] // 3
    if b is None:
        b = np.zeros(3 * H)
    W_xr, W_xz, W_xn = W_in[:H], W_in[H : 2 * H], W_in[2 * H :]
    W_hr, W_hz, W_hn = W_h[:H], W_h[H : 2 * H], W_h[2 * H :]
    b_r, b_z, b_i = b[:H], b[H : 2 * H], b[2 * H :]
    (h_before,) = state
    y = np.zeros((T, B, H))
    h_after = np.zeros((B, H))
    for column in range(B):
        h = h_before[column]
        for t in range(T):
            x_t = x[t, column]
            r = sigmoid(W_xr @ x_t + W_hr @ h + b_r)
            z = sigmoid(W_xz @ x_t + W_hz @ h + b_z)
            heard = r * (W_hn @ h + b_n) if reset_after else W_hn @ (r * h)
            n = np.tanh(W_xn @ x_t + b_i + heard)
            h = (1.0 - z) * n + z * h
            y[t, column] = h
        h_after[column] = h
    return y, (h_after,)
