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
    w,
    depth,
    width,
    P,
    b,
    j,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """sum_k x[k, b] w[k, j], for packed x (depth, P), w (depth, width), columns b and units j.

    The sum over k is split among GROUPS of threads.
    """
    parts = tl.zeros((GROUPS, b.shape[0], j.shape[0]), tl.float32)
    of_group = tl.arange(0, GROUPS)[:, None] * DEPTH + tl.arange(0, DEPTH)[None, :]
    for i in range(tl.cdiv(depth, GROUPS * DEPTH)):
        k = i * (GROUPS * DEPTH) + of_group
        inside = k < depth
        left = tl.load(x + k[:, None, :] * P + b[None, :, None], mask=inside[:, None, :], other=0.0)
        right = tl.load(
            w + k[:, :, None] * width + j[None, None, :],
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
    early,
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
    """h_t of `NativeScan`, from u (T, B, G), by the programs of n = 1.

    The programs of n > 1 compute W_n h_{t+1-n}, which step t + 1 reads, meanwhile.

    states (K + T, B, H) and packed (K + T, H, P) begin with the oldest of the history; W_h and W_g2 (K, H, H) are
    transposed. early (2, S, B, H) holds the products of n = 2..K for an even and for an odd step, S = K - 1, and for
    gated pooling those with W_g2 behind them, S = 2 (K - 1). Where KEEP: winners (T, B, H), the tap that won, or
    gates and taps (T, K, B, H). Step -1 has the products alone.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    n = tl.program_id(2) + 1
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    t = t.to(tl.int64)
    S = 2 * (K - 1) if POOLING == "gated" else K - 1
    if n > 1:
        h, w = packed + (t + 1 + K - n) * H * P, (n - 1) * H * H
        kept = early + (((t + 1) % 2) * S + n - 2) * B * H + at
        tl.store(kept, product(h, W_h + w, H, H, P, b, j, DEPTH, GROUPS), mask=inside)
        if POOLING == "gated":
            r = product(h, W_g2 + w, H, H, P, b, j, DEPTH, GROUPS)
            tl.store(kept + (K - 1) * B * H, r, mask=inside)
    elif t >= 0:
        past = packed + (t + K - 1) * H * P  # h_{t-1}
        kept = early + (t % 2) * S * B * H + at
        G = (1 + K) * H if POOLING == "gated" else H
        u_t = u + (t * B + b[:, None]) * G + j[None, :]
        z = tl.load(u_t, mask=inside, other=0.0)
        tap = product(past, W_h, H, H, P, b, j, DEPTH, GROUPS)
        if POOLING == "sum":
            z += tap
            for m in tl.static_range(2, K + 1):
                z += tl.load(kept + (m - 2) * B * H, mask=inside, other=0.0)
        elif POOLING == "max":
            winner = tl.full((ROWS, COLUMNS), 1, tl.int8)
            for m in tl.static_range(2, K + 1):
                other = tl.load(kept + (m - 2) * B * H, mask=inside, other=0.0)
                # The first of equals; a NaN wins and stays.
                wins = ((other > tap) | (other != other)) & (tap == tap)
                tap = tl.where(wins, other, tap)
                winner = tl.where(wins, m, winner).to(tl.int8)
            z += tap
            if KEEP:
                tl.store(winners + t * B * H + at, winner, mask=inside)
        else:
            r = product(past, W_g2, H, H, P, b, j, DEPTH, GROUPS)
            for m in tl.static_range(1, K + 1):
                if m > 1:
                    tap = tl.load(kept + (m - 2) * B * H, mask=inside, other=0.0)
                    r = tl.load(kept + (K + m - 3) * B * H, mask=inside, other=0.0)
                r = tl.sigmoid(r + tl.load(u_t + m * H, mask=inside, other=0.0))
                z += r * tap
                if KEEP:
                    place = (t * K + m - 1) * B * H + at
                    tl.store(gates + place, r, mask=inside)
                    tl.store(taps + place, tap, mask=inside)
        h = activate(z, ACTIVATION)
        tl.store(states + (t + K) * B * H + at, h, mask=inside)
        tl.store(past + H * P + j[None, :] * P + b[:, None], h, mask=(j < H)[None, :])


@triton.jit
def flow_back(
    packed,
    W_h,
    W_g2,
    n,
    s,
    T,
    H,
    P,
    b,
    j,
    K: tl.constexpr,
    POOLING: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """What flows back into h_s by way of W_n h_s, which step s + n reads; 0 where there is no such step."""
    depth = tl.where((s + n >= 0) & (s + n < T), H, 0)
    x, w = packed + (s + n) * H * P, (n - 1) * H * H
    if POOLING != "sum":
        x += (n - 1) * T * H * P
    flow = product(x, W_h + w, depth, H, P, b, j, DEPTH, GROUPS)
    if POOLING == "gated":
        x += K * T * H * P
        flow += product(x, W_g2 + w, depth, H, P, b, j, DEPTH, GROUPS)
    return flow


@triton.jit(do_not_specialize=["s", "T"])
def scan_step_back(
    grad_y,
    grad_last,
    states,
    packed,
    W_h,
    W_g2,
    early,
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
    """The gradient of u_s, or of h_s where s < 0; and packed, for the steps before, the gradients of W_n h_{s-n}.

    The programs of n = 1 compute these gradients. The programs of n > 1 compute meanwhile what flows back into h_{s-1}
    through W_n.
    packed is (T, H, P) of all n for sum pooling, (K, T, H, P) for max pooling, and (2 K, T, H, P) for gated pooling,
    where the gradients of W_g2[n-1] h_{s-n} follow. early (2, K - 1, B, H) begins as 0.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    n = tl.program_id(2) + 1
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    s, T = s.to(tl.int64), T.to(tl.int64)
    even = (s + K) % 2  # s >= -K
    if n > 1:
        flow = flow_back(packed, W_h, W_g2, n, s - 1, T, H, P, b, j, K, POOLING, DEPTH, GROUPS)
        tl.store(early + ((1 - even) * (K - 1) + n - 2) * B * H + at, flow, mask=inside)
    else:
        dh = tl.load(grad_y + s * B * H + at, mask=inside & (s >= 0), other=0.0)
        dh += tl.load(grad_last + (T - 1 - s) * B * H + at, mask=inside & (T - 1 - s < K), other=0.0)
        dh += flow_back(packed, W_h, W_g2, 1, s, T, H, P, b, j, K, POOLING, DEPTH, GROUPS)
        for m in tl.static_range(2, K + 1):
            dh += tl.load(early + (even * (K - 1) + m - 2) * B * H + at, mask=inside, other=0.0)
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
                for m in tl.static_range(1, K + 1):
                    tl.store(packed_s + (m - 1) * T * H * P, tl.where(winner == m, dz, 0.0), mask=units)
            else:
                for m in tl.static_range(1, K + 1):
                    kept = (s * K + m - 1) * B * H + at
                    r = tl.load(gates + kept, mask=inside, other=0.0)
                    dr = dz * tl.load(taps + kept, mask=inside, other=0.0) * (r * (1 - r))
                    tl.store(grad_u_s + m * H, dr, mask=inside)
                    tl.store(packed_s + (m - 1) * T * H * P, dz * r, mask=units)
                    tl.store(packed_s + (K + m - 1) * T * H * P, dr, mask=units)


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
        flow = product(packed + (s + 1) * H * P, W_h, H, H, P, b, j, DEPTH, GROUPS)
        r += bound_of(squares + (s + 2) * programs, programs, max_norm, 128) * flow
    own = squares + (s + 1) * programs + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    tl.store(own, tl.sum(tl.where(inside, r * r, 0.0)))
    if s >= 0:
        r *= slope(tl.load(states + (1 + s) * B * H + at, mask=inside, other=0.0), ACTIVATION)
        tl.store(packed + s * H * P + j[None, :] * P + b[:, None], r, mask=(j < H)[None, :])
    tl.store(q + (s + 1) * B * H + at, r, mask=inside)
