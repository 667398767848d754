"""The steps of the scans on a GPU, in Triton: one kernel is one step of all columns. `hornn.kernels.fused` runs them.

A program of a kernel computes ROWS columns of the batch times COLUMNS units. What a step multiplies lies packed, as
(H, P): the columns of the batch side by side, their number P padded to whole ROWS. What the padding holds meets
nothing else. All sums are of fp32 products. Nothing waits but a kernel for the one before it.
"""

import triton
import triton.language as tl


@triton.jit
def product(
    x,
    x_step,
    w,
    w_step,
    taps,
    depth,
    width,
    P,
    b,
    j,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """sum_n sum_k x[n, k, b] w[n, k, j], for `taps` packed x (depth, P) and w (depth, width), columns b and units j.

    x_step and w_step lead from one n to the next. The sum over k is split among GROUPS of threads.
    """
    parts = tl.zeros((GROUPS, b.shape[0], j.shape[0]), tl.float32)
    of_group = tl.arange(0, GROUPS)[:, None] * DEPTH + tl.arange(0, DEPTH)[None, :]
    blocks = tl.cdiv(depth, GROUPS * DEPTH)
    for i in range(taps * blocks):
        n = (i // blocks).to(tl.int64)
        k = i % blocks * (GROUPS * DEPTH) + of_group
        inside = k < depth
        left = tl.load(
            x + n * x_step + k[:, None, :] * P + b[None, :, None], mask=inside[:, None, :], other=0.0
        )
        right = tl.load(
            w + n * w_step + k[:, :, None] * width + j[None, None, :],
            mask=inside[:, :, None] & (j < width)[None, None, :],
            other=0.0,
        )
        parts = tl.dot(left, right, parts, input_precision="ieee")
    return tl.sum(parts, 0)


@triton.jit
def tanh(x):
    """By its series where exp would cancel."""
    square = x * x
    series = x * (1 + square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315 + square * (62 / 2835)))))
    small = tl.exp(-2 * tl.abs(x))
    whole = (1 - small) / (1 + small)
    return tl.where(square < 0.04, series, tl.where(x < 0, -whole, whole))


@triton.jit
def activate(z, ACTIVATION: tl.constexpr):
    if ACTIVATION == "sigmoid":
        h = tl.sigmoid(z)
    elif ACTIVATION == "tanh":
        h = tanh(z)
    else:
        h = tl.where(z < 0, 0.0, z)  # a NaN stays
    return h


@triton.jit
def slope(h, ACTIVATION: tl.constexpr):
    """f'(z) by h = f(z)."""
    if ACTIVATION == "sigmoid":
        f = h * (1 - h)
    elif ACTIVATION == "tanh":
        f = 1 - h * h
    else:
        f = tl.where(h > 0, 1.0, 0.0)
    return f


@triton.jit
def bound_of(squares, count, max_norm, SOME: tl.constexpr):
    """What scales a gradient to norm `max_norm` at most, of whose squares these `count` numbers are the sum."""
    square = 0.0
    for i in range(tl.cdiv(count, SOME)):
        at = i * SOME + tl.arange(0, SOME)
        square += tl.sum(tl.load(squares + at, mask=at < count, other=0.0))
    return tl.where(square > max_norm * max_norm, max_norm / tl.sqrt(square), 1.0)


@triton.jit(do_not_specialize=["t"])
def scan_step(
    u,
    states,
    packed,
    W_h,
    W_g2,
    winners,
    gates,
    taps,
    t,
    B,
    H,
    P,
    K: tl.constexpr,
    POOLING: tl.constexpr,
    ACTIVATION: tl.constexpr,
    KEEP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """h_t of `NativeScan`, from u (T, B, G).

    states (K + T, B, H) and packed (K + T, H, P) begin with the oldest of the history; W_h and W_g2 (K, H, H) are
    transposed. Where KEEP: winners (T, B, H), the tap that won, or gates and taps (T, K, B, H).
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    t = t.to(tl.int64)
    past = packed + (t + K - 1) * H * P  # h_{t-1}
    G = (1 + K) * H if POOLING == "gated" else H
    u_t = u + (t * B + b[:, None]) * G + j[None, :]
    z = tl.load(u_t, mask=inside, other=0.0)
    if POOLING == "sum":
        z += product(past, -H * P, W_h, H * H, K, H, H, P, b, j, DEPTH, GROUPS)
    elif POOLING == "max":
        most = product(past, 0, W_h, 0, 1, H, H, P, b, j, DEPTH, GROUPS)
        winner = tl.full((ROWS, COLUMNS), 1, tl.int8)
        for n in range(2, K + 1):
            h, w = past - (n - 1) * H * P, W_h + (n - 1) * H * H
            tap = product(h, 0, w, 0, 1, H, H, P, b, j, DEPTH, GROUPS)
            wins = ((tap > most) | (tap != tap)) & (most == most)  # the first of equals; a NaN wins and stays
            most = tl.where(wins, tap, most)
            winner = tl.where(wins, n, winner).to(tl.int8)
        z += most
        if KEEP:
            tl.store(winners + t * B * H + at, winner, mask=inside)
    else:
        for n in range(1, K + 1):
            h = past - (n - 1) * H * P
            w = (n - 1) * H * H
            tap = product(h, 0, W_h + w, 0, 1, H, H, P, b, j, DEPTH, GROUPS)
            r = product(h, 0, W_g2 + w, 0, 1, H, H, P, b, j, DEPTH, GROUPS)
            r = tl.sigmoid(r + tl.load(u_t + n * H, mask=inside, other=0.0))
            z += r * tap
            if KEEP:
                kept = (t * K + n - 1) * B * H + at
                tl.store(gates + kept, r, mask=inside)
                tl.store(taps + kept, tap, mask=inside)
    h = activate(z, ACTIVATION)
    tl.store(states + (t + K) * B * H + at, h, mask=inside)
    tl.store(past + H * P + j[None, :] * P + b[:, None], h, mask=(j < H)[None, :])


@triton.jit(do_not_specialize=["s", "T"])
def scan_step_back(
    grad_y,
    grad_last,
    states,
    packed,
    W_h,
    W_g2,
    winners,
    gates,
    taps,
    grad_u,
    grad_history,
    s,
    T,
    B,
    H,
    P,
    K: tl.constexpr,
    POOLING: tl.constexpr,
    ACTIVATION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """The gradients of u_s, or of h_s where s < 0, and for the steps before it those of W_n h_{s-n}, packed.

    packed is (T, H, P) of all n for sum pooling, (K, T, H, P) for max pooling, and (2 K, T, H, P) for gated pooling,
    where the gradients of W_g2[n-1] h_{s-n} follow.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    s, T = s.to(tl.int64), T.to(tl.int64)
    dh = tl.load(grad_y + s * B * H + at, mask=inside & (s >= 0), other=0.0)
    dh += tl.load(grad_last + (T - 1 - s) * B * H + at, mask=inside & (T - 1 - s < K), other=0.0)
    first = tl.maximum(1, -s)  # of the steps s + n that read h_s
    count = tl.minimum(K, T - 1 - s) - first + 1
    W = (first - 1) * H * H
    if POOLING == "sum":
        x = packed + (s + first) * H * P
        dh += product(x, H * P, W_h + W, H * H, count, H, H, P, b, j, DEPTH, GROUPS)
    else:
        x, step = packed + ((first - 1) * T + s + first) * H * P, (T + 1) * H * P
        dh += product(x, step, W_h + W, H * H, count, H, H, P, b, j, DEPTH, GROUPS)
        if POOLING == "gated":
            x += K * T * H * P
            dh += product(x, step, W_g2 + W, H * H, count, H, H, P, b, j, DEPTH, GROUPS)
    if s < 0:
        tl.store(grad_history + (-s - 1) * B * H + at, dh, mask=inside)
    else:
        dz = dh * slope(tl.load(states + (K + s) * B * H + at, mask=inside, other=0.0), ACTIVATION)
        G = (1 + K) * H if POOLING == "gated" else H
        grad_u_s = grad_u + (s * B + b[:, None]) * G + j[None, :]
        packed_s = packed + (s * H + j[None, :]) * P + b[:, None]
        units = (j < H)[None, :]
        tl.store(grad_u_s, dz, mask=inside)
        if POOLING == "sum":
            tl.store(packed_s, dz, mask=units)
        elif POOLING == "max":
            winner = tl.load(winners + s * B * H + at, mask=inside, other=0)
            for n in tl.static_range(1, K + 1):
                tl.store(packed_s + (n - 1) * T * H * P, tl.where(winner == n, dz, 0.0), mask=units)
        else:
            for n in tl.static_range(1, K + 1):
                kept = (s * K + n - 1) * B * H + at
                r = tl.load(gates + kept, mask=inside, other=0.0)
                dr = dz * tl.load(taps + kept, mask=inside, other=0.0) * (r * (1 - r))
                tl.store(grad_u_s + n * H, dr, mask=inside)
                tl.store(packed_s + (n - 1) * T * H * P, dz * r, mask=units)
                tl.store(packed_s + (K + n - 1) * T * H * P, dr, mask=units)


@triton.jit(do_not_specialize=["s", "T"])
def bounded_step_back(
    known,
    states,
    packed,
    W_h,
    q,
    squares,
    max_norm,
    s,
    T,
    B,
    H,
    P,
    ACTIVATION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """r_s = known_{s+1} + bound(r_{s+1}) W_h^T q_{s+1}, what flows back into h_s, and q_s = r_s f'(z_s).

    q (1 + T, B, H) begins with r_{-1}, packed (T, H, P) holds q_s; squares (1 + T, programs) begins with those of
    r_{-1}: what each program has of the square of its norm. Of step T - 1 there is no r.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    s = s.to(tl.int64)
    programs = tl.num_programs(0) * tl.num_programs(1)
    r = tl.load(known + (s + 1) * B * H + at, mask=inside, other=0.0)
    if s + 1 < T - 1:
        flow = product(packed + (s + 1) * H * P, 0, W_h, 0, 1, H, H, P, b, j, DEPTH, GROUPS)
        r += bound_of(squares + (s + 2) * programs, programs, max_norm, 128) * flow
    own = squares + (s + 1) * programs + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    tl.store(own, tl.sum(tl.where(inside, r * r, 0.0)))
    if s >= 0:
        r *= slope(tl.load(states + (1 + s) * B * H + at, mask=inside, other=0.0), ACTIVATION)
        tl.store(packed + s * H * P + j[None, :] * P + b[:, None], r, mask=(j < H)[None, :])
    tl.store(q + (s + 1) * B * H + at, r, mask=inside)
