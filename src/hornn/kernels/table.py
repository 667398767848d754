"""Which cells have a native time loop: the one place where a cell's class and the kernels of `scans` meet.

A cell is found by its exact class, so that a subclass with another step never runs its parent's kernel.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.base import Cell
from hornn.cells.deep import DeepRnn, StackedRnn, StackedRnnState
from hornn.cells.elman import Rnn, RnnState
from hornn.cells.gru import Gru
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn, HornnState, MaxHornn
from hornn.cells.hornn_acoustic import (
    ReluHornn,
    ReluHornnp,
    ReluHornnpState,
    ResRnn,
    SigmoidHornn,
    SigmoidHornnp,
    SigmoidHornnpState,
)
from hornn.cells.lstm import Lstm, Lstmp, LstmpState, LstmState
from hornn.cells.mlp import LpUnits, PointwiseUnits
from hornn.cells.scrn import Scrn, ScrnState, Srn
from hornn.columns import drop, world_size
from hornn.kernels import fused, library
from hornn.kernels.fused_cells import FusedGru, FusedLeak, FusedLstm
from hornn.kernels.layers import LINEAR, NativeLayers, Pool, Tap
from hornn.kernels.scans import NativeGru, NativeLeak, NativeLstm, NativeScan


class How(NamedTuple):
    """The bound of a time loop on the gradient of each state (`hornn.scan.scan`), and the dtype of its products."""

    max_norm: float | None = None
    in_bf16: bool = False


class Kernels(NamedTuple):
    """The time loops of one kind of device."""

    scan: type[NativeScan]
    lstm: type[NativeLstm]
    gru: type[NativeGru]
    leak: type[NativeLeak]

    @classmethod
    def of(cls, u: Tensor) -> "Kernels":
        """The time loops for the device of u."""
        if u.device.type == "cuda":
            return cls(fused.FusedScan, FusedLstm, FusedGru, FusedLeak)
        return cls(NativeScan, NativeLstm, NativeGru, NativeLeak)


def run_rnn(cell: Rnn, u: Tensor, state: RnnState, how: How) -> tuple[Tensor, RnnState]:
    y, h = run_elman(u, state.h, cell.W_h, cell.activation, how)
    return y, RnnState(h)


def run_srn(cell: Srn, u: Tensor, state: RnnState, how: How) -> tuple[Tensor, RnnState]:
    y, h = run_elman(u, state.h, cell.R, cell.activation, how)
    return y, RnnState(h)


def run_deep(cell: DeepRnn, u: Tensor, state: RnnState, how: How) -> tuple[Tensor, RnnState]:
    """The biases are a part of the input, and a layer that x_t does not feed has an input of zeros.

    A layer of maxout or L_p units, or with dropout, is two native ones: its pieces and what is made of them.
    """
    layers: list[Any] = list(cell.plus)
    widths = [layer.units.pre_width for layer in layers]
    if len(cell.fed_sizes) < len(layers):
        fed = range(len(layers))[cell.fed]
        u = F.pad(u, (sum(widths[: fed.start]), sum(widths[fed.stop :])))
    if layers[0].b is not None:
        u = u + torch.cat([layer.b for layer in layers])
    factors = draw_factors(layers, u)
    levels: list[NativeLevel] = []
    below: list[int] = []  # of each layer: the native one that its pieces are
    for layer, width, kept in zip(layers, widths, factors, strict=True):
        plain = isinstance(layer.units, PointwiseUnits)
        below.append(len(levels))
        levels.append(NativeLevel(width, layer.units.activation if plain else LINEAR, None))
        if not plain or kept is not None:
            orders = orders_of(layer.units, u) if isinstance(layer.units, LpUnits) else None
            levels.append(NativeLevel(layer.units.width, LINEAR, Pool(layer.units.pieces, orders, kept)))
    top = len(levels) - 1
    weights = {Tap(below[0], top, 1): layers[0].W}
    weights |= {Tap(at, at - 1, 0): layer.W for at, layer in zip(below[1:], layers[1:], strict=True)}
    weights |= {
        Tap(at, top, 1): layer.S for at, layer in zip(below, layers, strict=True) if layer.S is not None
    }
    pooled = [level for level, (*_, pool) in enumerate(levels) if pool is not None]
    none = [u.new_empty(0, u.size(1), level.width) for level in levels[:-1]]
    y, *_, last = NativeLayers.apply(
        u,
        [*none, state.h.unsqueeze(0)],
        list(weights.values()),
        [*weights, *(Tap(level, level - 1, 0) for level in pooled)],
        [level.activation for level in levels],
        [level.pool is None for level in levels],
        *how,
        [pool for *_, pool in levels if pool is not None],
    )
    return y, RnnState(last.squeeze(0))


def draw_factors(layers: list[Any], u: Tensor) -> list[Tensor | None]:
    """What the units (T, B, N) of each layer with dropout are multiplied by, drawn step by step, as the steps draw."""
    drawn: list[list[Tensor]] = [[] for _ in layers]
    for u_t in u:
        for layer, factors in zip(layers, drawn, strict=True):
            if layer.dropout and layer.training:
                factors.append(drop(u_t.new_ones(len(u_t), layer.units.width), layer.dropout))
    return [torch.stack(factors) if factors else None for factors in drawn]


def orders_of(units: LpUnits, u: Tensor) -> Tensor:
    """The orders (N), of which there may be one for all."""
    p = units.p
    return p if isinstance(p, Tensor) else u.new_full((units.width,), p)


class NativeLevel(NamedTuple):
    """A native layer of a deep transition, and the pool through which it hears the one before it, where it has one."""

    width: int
    activation: str
    pool: Pool | None


def run_stacked(
    cell: StackedRnn, u: Tensor, state: StackedRnnState, how: How
) -> tuple[Tensor, StackedRnnState]:
    """Level by level, each over all time: a level hears the one below at the same step alone."""
    fed = u.split(cell.hidden_size, dim=-1)
    levels: list[Tensor] = []
    last: list[Tensor] = []
    for level, (W_h, h) in enumerate(zip(cell.W_h, state.h, strict=True)):
        heard = [fed[level]] if level < len(fed) else []
        if level > 0:
            heard.append(F.linear(levels[-1], cell.U[level - 1]))
        if cell.b is not None:
            heard.append(cell.b[level])
        y, h = run_elman(sum(heard[1:], heard[0]), h, W_h, cell.activation, how)
        levels.append(y)
        last.append(h)
    y = torch.cat(levels, dim=-1) if cell.output_shortcuts else levels[-1]
    return y, StackedRnnState(torch.stack(last))


def run_elman(u: Tensor, h: Tensor, W_h: Tensor, activation: str, how: How) -> tuple[Tensor, Tensor]:
    """h_t = f(u_t + W_h h_{t-1}): all of them and the last one (B, H)."""
    y, last = Kernels.of(u).scan.apply(u, h.unsqueeze(0), W_h.unsqueeze(0), None, "sum", activation, *how)
    return y, last.squeeze(0)


def run_hornn(
    cell: Hornn, u: Tensor, state: HornnState, how: How, pooling: str = "sum"
) -> tuple[Tensor, HornnState]:
    W_h: Tensor = cell.W_h
    factors = None
    if isinstance(cell, FofeHornn):
        powers = cell.powers()
        if powers.requires_grad:
            W_h = powers * W_h
        else:
            factors = powers.flatten()
    W_g2 = cell.W_g2 if isinstance(cell, GatedHornn) else None
    y, last = Kernels.of(u).scan.apply(u, state.history, W_h, W_g2, pooling, cell.activation, *how, factors)
    return y, HornnState(last)


def run_acoustic(cell: ReluHornn, u: Tensor, state: HornnState, how: How) -> tuple[Tensor, HornnState]:
    """One layer, which hears itself."""
    taps = [Tap(0, 0, 1), Tap(0, 0, cell.n)]
    if isinstance(cell, SigmoidHornn):
        taps.append(Tap(0, 0, cell.m))
    y, last = NativeLayers.apply(
        u, [state.history], [cell.U_1, cell.U_n], taps, [cell.activation], [True], *how
    )
    return y, HornnState(last)


def run_projected(
    cell: ReluHornnp, u: Tensor, state: ReluHornnpState | SigmoidHornnpState, how: How
) -> tuple[Tensor, ReluHornnpState | SigmoidHornnpState]:
    """The units, which hear their projection and themselves, and the projection."""
    weights = [cell.U_p1, cell.U_pn, cell.P]
    taps = [Tap(0, 1, 1), Tap(0, 1, cell.n), Tap(1, 0, 0)]
    history = u.new_empty(0, *u.shape[1:])
    if isinstance(state, SigmoidHornnpState):
        history = state.history
        taps.append(Tap(0, 0, len(history)))
    y, *last = NativeLayers.apply(
        u, [history, state.projected], weights, taps, [cell.f.__name__, LINEAR], [True, False], *how
    )
    after = SigmoidHornnpState(last[1], last[0]) if len(history) else ReluHornnpState(last[1])
    return y, after


def run_residual(cell: ResRnn, u: Tensor, state: HornnState, how: How) -> tuple[Tensor, HornnState]:
    """The inner layer, and the state above it."""
    taps = [Tap(0, 1, 1), Tap(1, 0, 0), Tap(1, 1, cell.m)]
    none = u.new_empty(0, *u.shape[1:])
    y, _, last = NativeLayers.apply(
        u, [none, state.history], [cell.U_d1, cell.U_d2], taps, [cell.activation] * 2, [True, False], *how
    )
    return y, HornnState(last)


def run_lstm(cell: Lstm, u: Tensor, state: LstmState, how: How) -> tuple[Tensor, LstmState]:
    y, h, c = Kernels.of(u).lstm.apply(u, state.h, state.c, cell.W_h, None, *how)
    return y, LstmState(h, c)


def run_lstmp(cell: Lstmp, u: Tensor, state: LstmpState, how: How) -> tuple[Tensor, LstmpState]:
    y, r, c = Kernels.of(u).lstm.apply(u, state.r, state.c, cell.W_h, cell.P, *how)
    return y, LstmpState(r, c)


def run_gru(cell: Gru, u: Tensor, state: RnnState, how: How) -> tuple[Tensor, RnnState]:
    y, h = Kernels.of(u).gru.apply(u, state.h, cell.W_h, cell.b_n, cell.reset_after, *how)
    return y, RnnState(h)


def run_scrn(cell: Scrn, u: Tensor, state: ScrnState, how: How) -> tuple[Tensor, ScrnState]:
    """First the context, which hears nothing of the hidden units, then these."""
    a, b = u.split([cell.hidden_size, cell.context_size], dim=-1)
    learned = cell.learned_factors()
    kept = b.new_full((cell.context_size,), cell.alpha) if learned is None else learned
    s, last_s = Kernels.of(u).leak.apply(b, state.s, kept, how.max_norm)
    if not cell.hidden_size:
        return s, ScrnState(state.h, last_s)
    h, last_h = run_elman(a + F.linear(s, cell.P), state.h, cell.R, cell.activation, how)
    return torch.cat([h, s], dim=-1), ScrnState(last_h, last_s)


def nothing(cell: Cell, max_norm: float | None) -> None:
    """No obstacle: the cell runs as it is, whatever its arguments."""


def refuse_a_bound(cell: Cell, max_norm: float | None) -> str | None:
    return None if max_norm is None else "network.state_grad_norm has no native kernel with this recurrence"


def refuse_a_bound_on_several(cell: Cell, max_norm: float | None) -> str | None:
    if max_norm is None or len(cell.initial_state(1)[0]) == 1:
        return None
    return "network.state_grad_norm bounds the gradient of a state that holds several steps"


def refuse_a_bound_on_levels(cell: StackedRnn, max_norm: float | None) -> str | None:
    if max_norm is None or cell.depth == 1:
        return None
    return "network.state_grad_norm bounds the gradient of all levels as one vector"


def refuse_a_past_context(cell: Scrn, max_norm: float | None) -> str | None:
    return None if cell.context_input == "current" else "there is no native kernel for context_input=previous"


def refuse_on_a_gpu(cell: Gru, max_norm: float | None) -> str | None:
    return refuse_a_bound(cell, max_norm) if cell.reset_after else "a GPU has no kernel for reset_after=false"


Obstacle = Callable[[Any, float | None], str | None]


class NativeCell(NamedTuple):
    """How the kernels run a cell of one class.

    `run(cell, u, state, how)` gives y and the last state, for u (T, B, G) of `project_input`.
    `obstacle(cell, max_norm)` says why it cannot run a cell of these arguments, `on_gpu` why not there; it is None
    where a GPU has no kernels for the class.
    """

    run: Callable[[Any, Tensor, Any, How], tuple[Tensor, Any]]
    obstacle: Obstacle = nothing
    on_gpu: Obstacle | None = None


NATIVE: dict[type[Cell], NativeCell] = {
    Rnn: NativeCell(run_rnn, on_gpu=nothing),
    Hornn: NativeCell(run_hornn, refuse_a_bound_on_several, nothing),
    MaxHornn: NativeCell(partial(run_hornn, pooling="max"), refuse_a_bound, nothing),
    FofeHornn: NativeCell(run_hornn, refuse_a_bound_on_several, nothing),
    GatedHornn: NativeCell(partial(run_hornn, pooling="gated"), refuse_a_bound, nothing),
    ReluHornn: NativeCell(run_acoustic, refuse_a_bound_on_several),
    SigmoidHornn: NativeCell(run_acoustic, refuse_a_bound_on_several),
    ReluHornnp: NativeCell(run_projected, refuse_a_bound),
    SigmoidHornnp: NativeCell(run_projected, refuse_a_bound),
    ResRnn: NativeCell(run_residual, refuse_a_bound_on_several),
    Lstm: NativeCell(run_lstm, on_gpu=nothing),
    Lstmp: NativeCell(run_lstmp),
    Gru: NativeCell(run_gru, on_gpu=refuse_on_a_gpu),
    Srn: NativeCell(run_srn, on_gpu=nothing),
    Scrn: NativeCell(run_scrn, refuse_a_past_context, nothing),
    DeepRnn: NativeCell(run_deep),
    StackedRnn: NativeCell(run_stacked, refuse_a_bound_on_levels, nothing),
}


def find_native_obstacle(cell: Cell, device: torch.device, max_norm: float | None) -> str | None:
    """Why the native kernels cannot run this cell on this device; None if they can. It builds them if need be."""
    if device.type not in ("cpu", "cuda"):
        return "the native kernels are for CPUs and for NVIDIA's GPUs"
    on_gpu = device.type == "cuda"
    able = {kind: own for kind, own in NATIVE.items() if own.on_gpu is not None or not on_gpu}
    if type(cell) not in able:
        return f"there are native kernels for {', '.join(kind.__name__ for kind in able)}"
    if max_norm is not None and world_size() > 1:
        return "network.state_grad_norm bounds the gradient of the columns of all processes together"
    own = able[type(cell)]
    for refuse in (own.obstacle, own.on_gpu if on_gpu else None):
        if refuse is not None and (obstacle := refuse(cell, max_norm)) is not None:
            return obstacle
    dtype = cell.initial_state(1)[0].dtype  # a cell without weights of its own has one, too
    if dtype != torch.float32:
        return f"the native kernels compute in fp32, its weights are {dtype}"
    return why_not(on_gpu)


def why_not(on_gpu: bool) -> str | None:
    """Why there are no native kernels on this machine, for its GPU or its CPU, in one line; None if there are."""
    return fused.why_not() if on_gpu else library.why_not()


def run_native(
    cell: Cell, u: Tensor, state: Any, max_norm: float | None = None, in_bf16: bool = False
) -> tuple[Tensor, Any]:
    """The time loop of a cell to which there is no obstacle.

    in_bf16: round the factors of its products, and of those of its weights' gradients, to bf16; the sums, the states
    and all else are in fp32, also the products between the levels of a stack and with context units. Raises ValueError
    on a GPU, and where the CPU has no such products.
    """
    if in_bf16 and u.device.type == "cpu" and not library.operators().has_bf16():
        raise ValueError("a time loop in bf16 needs a CPU with AVX-512 BF16: set network.precision=fp32")
    return NATIVE[type(cell)].run(cell, u, state, How(max_norm, in_bf16))
