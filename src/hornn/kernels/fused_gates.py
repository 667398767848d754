"""The steps of the LSTM and of the GRU, and the whole scan of slow units, on a GPU: see `fused_steps`.

The matrix of a step forward is (H, 4 H), the columns of all gates of a unit side by side; that of the GRU, which has
three, has a fourth of zeros. The matrix of a step back is W_h as it is.
"""

import triton
import triton.language as tl

from hornn.kernels.fused_steps import bound_of, product, tanh


@triton.jit
def four(sums):
    """(ROWS, 4 units), the gates of a unit side by side -> the gates one by one, each (ROWS, units)."""
    pairs = tl.reshape(sums, (sums.shape[0], sums.shape[1] // 4, 2, 2))
    even, odd = tl.split(pairs)
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit(do_not_specialize=["t"])
def lstm_step(
    u,
    states,
    cells,
    packed,
    W_h,
    gates,
    t,
    B,
    H,
    P,
    KEEP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """h_t and c_t of `NativeLstm`, into states and cells (1 + T, B, H) and packed (1 + T, H, P), from u (T, B, 4 H).

    Where KEEP: gates (T, 4, B, H).
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * (COLUMNS // 4) + tl.arange(0, COLUMNS // 4)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    t = t.to(tl.int64)
    u_t = u + (t * B + b[:, None]) * 4 * H + j[None, :]
    u_i = tl.load(u_t, mask=inside, other=0.0)
    u_f = tl.load(u_t + H, mask=inside, other=0.0)
    u_g = tl.load(u_t + 2 * H, mask=inside, other=0.0)
    u_o = tl.load(u_t + 3 * H, mask=inside, other=0.0)
    c = tl.load(cells + t * B * H + at, mask=inside, other=0.0)
    past = packed + t * H * P
    i, f, g, o = four(product(past, W_h, H, 4 * H, P, b, columns, DEPTH, GROUPS))
    i, f, g, o = tl.sigmoid(u_i + i), tl.sigmoid(u_f + f), tanh(u_g + g), tl.sigmoid(u_o + o)
    c = f * c + i * g
    h = o * tanh(c)
    tl.store(cells + (t + 1) * B * H + at, c, mask=inside)
    tl.store(states + (t + 1) * B * H + at, h, mask=inside)
    tl.store(past + H * P + j[None, :] * P + b[:, None], h, mask=(j < H)[None, :])
    if KEEP:
        kept = gates + t * 4 * B * H + at
        tl.store(kept, i, mask=inside)
        tl.store(kept + B * H, f, mask=inside)
        tl.store(kept + 2 * B * H, g, mask=inside)
        tl.store(kept + 3 * B * H, o, mask=inside)


@triton.jit(do_not_specialize=["s", "T"])
def lstm_step_back(
    grad_y,
    grad_h,
    cells,
    gates,
    packed,
    W_h,
    grad_u,
    grad_h_0,
    carried,
    flows,
    squares,
    max_norm,
    s,
    T,
    B,
    H,
    P,
    MULTIPLY: tl.constexpr,
    FINISH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """The gradient of u_s into grad_u and packed (T, 4 H, P). Where s < 0: the gradient of the first state.

    carried (B, H) holds the gradient of c_s from the step after, and afterwards the gradient of c_{s-1}. With a bound
    on what flows back there are two kernels a step. The first multiplies: flows (B, H) holds what flows into h_s. The
    second does the rest. squares (2, 2 + T, programs), at s + 1, hold each program's part of the squared norms of what
    flows into h_s and c_s.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    s, T = s.to(tl.int64), T.to(tl.int64)
    programs = tl.num_programs(0) * tl.num_programs(1)
    squares_h = squares + (s + 1) * programs
    squares_c = squares_h + (2 + T) * programs
    own = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    flow = tl.zeros((ROWS, COLUMNS), tl.float32)
    if MULTIPLY and s + 1 < T:
        x = packed + (s + 1) * 4 * H * P
        flow += product(x, W_h, 4 * H, H, P, b, j, DEPTH, GROUPS)
        if not FINISH:
            tl.store(flows + at, flow, mask=inside)
            tl.store(squares_h + own, tl.sum(tl.where(inside, flow * flow, 0.0)))
    if FINISH:
        dc = tl.load(carried + at, mask=inside, other=0.0)
        if not MULTIPLY and s + 1 < T:
            flow = tl.load(flows + at, mask=inside, other=0.0)
            flow *= bound_of(squares_h, programs, max_norm, 128)
            dc *= bound_of(squares_c, programs, max_norm, 128)
        dh = flow + tl.load(grad_y + s * B * H + at, mask=inside & (s >= 0), other=0.0)
        dh += tl.load(grad_h + at, mask=inside & (s + 1 == T), other=0.0)
        if s < 0:
            tl.store(grad_h_0 + at, dh, mask=inside)
            tl.store(carried + at, dc, mask=inside)
        else:
            kept = gates + s * 4 * B * H + at
            i = tl.load(kept, mask=inside, other=0.0)
            f = tl.load(kept + B * H, mask=inside, other=0.0)
            g = tl.load(kept + 2 * B * H, mask=inside, other=0.0)
            o = tl.load(kept + 3 * B * H, mask=inside, other=0.0)
            before = tl.load(cells + s * B * H + at, mask=inside, other=0.0)
            m = tanh(tl.load(cells + (s + 1) * B * H + at, mask=inside, other=0.0))
            dc += dh * o * (1 - m * m)
            back = dc * f
            tl.store(carried + at, back, mask=inside)
            if not MULTIPLY:
                tl.store(squares_c - programs + own, tl.sum(tl.where(inside, back * back, 0.0)))
            grad_u_s = grad_u + (s * B + b[:, None]) * 4 * H + j[None, :]
            packed_s = packed + (s * 4 * H + j[None, :]) * P + b[:, None]
            put(grad_u_s, packed_s, 0, dc * g * (i * (1 - i)), inside, j, H, P)
            put(grad_u_s, packed_s, 1, dc * before * (f * (1 - f)), inside, j, H, P)
            put(grad_u_s, packed_s, 2, dc * i * (1 - g * g), inside, j, H, P)
            put(grad_u_s, packed_s, 3, dh * m * (o * (1 - o)), inside, j, H, P)


@triton.jit
def put(grad_u_s, packed_s, gate, grad, inside, j, H, P):
    tl.store(grad_u_s + gate * H, grad, mask=inside)
    tl.store(packed_s + gate * H * P, grad, mask=(j < H)[None, :])


@triton.jit(do_not_specialize=["t"])
def gru_step(
    u,
    states,
    packed,
    W_h,
    b_n,
    gates,
    t,
    B,
    H,
    P,
    KEEP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """h_t of `NativeGru`, into states (1 + T, B, H) and packed (1 + T, H, P), from u (T, B, 3 H).

    Where KEEP: gates (T, 4, B, H) are r, z, n and the product of n.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * (COLUMNS // 4) + tl.arange(0, COLUMNS // 4)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    t = t.to(tl.int64)
    u_t = u + (t * B + b[:, None]) * 3 * H + j[None, :]
    u_r = tl.load(u_t, mask=inside, other=0.0)
    u_z = tl.load(u_t + H, mask=inside, other=0.0)
    u_n = tl.load(u_t + 2 * H, mask=inside, other=0.0)
    before = tl.load(states + t * B * H + at, mask=inside, other=0.0)
    past = packed + t * H * P
    r, z, v, _ = four(product(past, W_h, H, 4 * H, P, b, columns, DEPTH, GROUPS))
    if b_n is not None:
        v += tl.load(b_n + j, mask=j < H, other=0.0)[None, :]
    r, z = tl.sigmoid(u_r + r), tl.sigmoid(u_z + z)
    n = tanh(u_n + r * v)
    h = n + z * (before - n)
    tl.store(states + (t + 1) * B * H + at, h, mask=inside)
    tl.store(past + H * P + j[None, :] * P + b[:, None], h, mask=(j < H)[None, :])
    if KEEP:
        kept = gates + t * 4 * B * H + at
        tl.store(kept, r, mask=inside)
        tl.store(kept + B * H, z, mask=inside)
        tl.store(kept + 2 * B * H, n, mask=inside)
        tl.store(kept + 3 * B * H, v, mask=inside)


@triton.jit(do_not_specialize=["s", "T"])
def gru_step_back(
    grad_y,
    states,
    gates,
    packed,
    W_h,
    grad_u,
    grad_v,
    carried,
    s,
    T,
    B,
    H,
    P,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """The gradients of u_s and of v_s, the product in n; packed (T, 3 H, P) holds the gradients of all three products.

    carried (B, H) holds the gradient of h_s that passes by step s + 1, and afterwards the gradient of h_{s-1} that
    passes by step s. At s = -1 it becomes the whole gradient of h_{-1}.
    """
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (b < B)[:, None] & (j < H)[None, :]
    at = b[:, None] * H + j[None, :]
    s = s.to(tl.int64)
    dh = tl.load(carried + at, mask=inside, other=0.0)
    dh += tl.load(grad_y + s * B * H + at, mask=inside & (s >= 0), other=0.0)
    if s + 1 < T:
        x = packed + (s + 1) * 3 * H * P
        dh += product(x, W_h, 3 * H, H, P, b, j, DEPTH, GROUPS)
    if s < 0:
        tl.store(carried + at, dh, mask=inside)
    else:
        kept = gates + s * 4 * B * H + at
        r = tl.load(kept, mask=inside, other=0.0)
        z = tl.load(kept + B * H, mask=inside, other=0.0)
        n = tl.load(kept + 2 * B * H, mask=inside, other=0.0)
        v = tl.load(kept + 3 * B * H, mask=inside, other=0.0)
        before = tl.load(states + s * B * H + at, mask=inside, other=0.0)
        dn = dh * (1 - z) * (1 - n * n)
        grad_u_s = grad_u + (s * B + b[:, None]) * 3 * H + j[None, :]
        packed_s = packed + (s * 3 * H + j[None, :]) * P + b[:, None]
        put(grad_u_s, packed_s, 0, dn * v * (r * (1 - r)), inside, j, H, P)
        put(grad_u_s, packed_s, 1, dh * (before - n) * (z * (1 - z)), inside, j, H, P)
        tl.store(grad_u_s + 2 * H, dn, mask=inside)
        tl.store(grad_v + s * B * H + at, dn * r, mask=inside)
        tl.store(packed_s + 2 * H * P, dn * r, mask=(j < H)[None, :])
        tl.store(carried + at, dh * z, mask=inside)


@triton.jit
def leak(b, s, kept, y, T, size, C, BLOCK: tl.constexpr):
    """All s_t of `NativeLeak`, `size` = B C numbers a step."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    keeps = tl.load(kept + at % C)
    s_t = tl.load(s + at, mask=inside, other=0.0)
    for _ in range(T):
        b_t = tl.load(b + at, mask=inside, other=0.0)
        s_t = b_t + keeps * (s_t - b_t)
        tl.store(y + at, s_t, mask=inside)
        b += size
        y += size


@triton.jit
def leak_back(
    grad_y, grad_last, kept, whole, grad_s, max_norm, T, size, C, BOUNDED: tl.constexpr, BLOCK: tl.constexpr
):
    """The whole gradient of each s_t, and the gradient of s. With a bound one program computes all columns."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    keeps = tl.load(kept + at % C)
    back = tl.load(grad_last + at, mask=inside, other=0.0)
    last = tl.cast(T - 1, tl.int64) * size
    grad_y += last
    whole += last
    for _ in range(T):
        ds = back + tl.load(grad_y + at, mask=inside, other=0.0)
        tl.store(whole + at, ds, mask=inside)
        grad_y -= size
        whole -= size
        back = keeps * ds
        if BOUNDED:
            square = tl.sum(back * back)
            back *= tl.where(square > max_norm * max_norm, max_norm / tl.sqrt(square), 1.0)
    tl.store(grad_s + at, back, mask=inside)
