"""Long short-term memory without peepholes."""

import numpy as np

from reference.activations import Array, sigmoid


def lstm(
    x: Array, state: tuple[Array, Array], W_in: Array, W_h: Array, b: Array | None = None
) -> tuple[Array, tuple[Array, Array]]:
    """The LSTM as torch.nn.LSTM documents it, its two biases one. State: h, c, both (B, H).

    i = sigmoid(W_ii x_t + W_hi h_{t-1} + b_i)        input gate
    f = sigmoid(W_if x_t + W_hf h_{t-1} + b_f)        forget gate
    g =    tanh(W_ig x_t + W_hg h_{t-1} + b_g)        candidate
    o = sigmoid(W_io x_t + W_ho h_{t-1} + b_o)        output gate
    c_t = f c_{t-1} + i g,   h_t = o tanh(c_t),   y_t = h_t

    The four blocks of H rows in W_in (4H, I), W_h (4H, H) and b (4H) are i, f, g, o.
    """
    T, B, _ = x.shape
    H = W_in.shape[0] // 4
    if b is None:
        b = np.zeros(4 * H)
    W_ii, W_if, W_ig, W_io = W_in[:H], W_in[H : 2 * H], W_in[2 * H : 3 * H], W_in[3 * H :]
    W_hi, W_hf, W_hg, W_ho = W_h[:H], W_h[H : 2 * H], W_h[2 * H : 3 * H], W_h[3 * H :]
    b_i, b_f, b_g, b_o = b[:H], b[H : 2 * H], b[2 * H : 3 * H], b[3 * H :]
    h_before, c_before = state
    y = np.zeros((T, B, H))
    h_after = np.zeros((B, H))
    c_after = np.zeros((B, H))
    for column in range(B):
        h = h_before[column]
        c = c_before[column]
        for t in range(T):
            x_t = x[t, column]
            i = sigmoid(W_ii @ x_t + W_hi @ h + b_i)
            f = sigmoid(W_if @ x_t + W_hf @ h + b_f)
            g = np.tanh(W_ig @ x_t + W_hg @ h + b_g)
            o = sigmoid(W_io @ x_t + W_ho @ h + b_o)
            c = f * c + i * g
            h = o * np.tanh(c)
            y[t, column] = h
        h_after[column] = h
        c_after[column] = c
    return y, (h_after, c_after)
