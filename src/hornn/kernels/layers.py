"""The native time loop of layers of units that hear each other, as a function that torch can differentiate."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hornn.cells.base import ACTIVATIONS
from hornn.checks import require_choice
from hornn.kernels.library import operators, require_floats
from hornn.kernels.reduced import product_over_time

LINEAR = "linear"  # the activation of a layer that has none


class Tap(NamedTuple):
    """What the layer of this number, counted from 0, hears: `source`, another layer or itself, `lag` steps ago."""

    layer: int
    source: int
    lag: int


class Pool(NamedTuple):
    """How a layer of N units hears a layer of `pieces` times as many, one piece of all units after the other.

    Each unit is the largest of its pieces, or, of `orders` p (N), their normalised L_p norm (`hornn.cells.mlp`); then
    it is multiplied by its number of `factors` (T, B, N), such as dropout's.
    """

    pieces: int
    orders: Tensor | None = None
    factors: Tensor | None = None


class NativeLayers(torch.autograd.Function):
    """The scan of L layers of units over a chunk, the last of which is the output.

        z_lt = f_l(u_lt + sum over its taps (l, k, n) of W z_{k, t-n}),   y_t = z_Lt

    `apply(u, histories, weights, taps, activations, fed, max_norm=None, in_bf16=False, pools=())` -> y (T, B, N_L) and,
    for each layer, its last states (K_l, B, N_l), newest first. u (T, B, G) is u_lt of the layers that are `fed`, side
    by side; the others have none. histories[l] (K_l, B, N_l) are the layer's last states before the chunk, newest
    first; K_l is the largest lag at which it is heard, or 0. At lag 0 a layer hears those before it alone. taps[i] has
    weights[i] (N_layer, N_source); the taps after the last weight add what they hear as it is, the last ones of these
    what their `pools` make of it. f_l is `activations[l]`: sigmoid, tanh, relu or linear. `max_norm` bounds the
    gradient that flows back into each state of the last layer (`hornn.scan.scan`), where it is the only state and is
    heard one step later alone. `in_bf16` is as in `hornn.kernels.table.run_native`.

    The backward pass runs back through time for the gradients of the layers alone; each weight's gradient is then
    one product over all steps and columns.
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there
    are no kernels.
    """

    @classmethod
    def apply(
        cls,
        u: Tensor,
        histories: Sequence[Tensor],
        weights: Sequence[Tensor],
        taps: Sequence[Tap],
        activations: Sequence[str],
        fed: Sequence[bool],
        max_norm: float | None = None,
        in_bf16: bool = False,
        pools: Sequence[Pool] = (),
    ) -> tuple[Tensor, ...]:
        for activation in activations:
            require_choice("activation", activation, (*ACTIVATIONS, LINEAR))
        given = {"u": u}
        given |= {f"history {level}": history for level, history in enumerate(histories)}
        given |= {f"weight {number}": weight for number, weight in enumerate(weights)}
        numbers = {
            f"{name} of pool {i}": x for i, pool in enumerate(pools) for name, x in parts_of(pool).items()
        }
        require_floats(**given, **numbers)
        require_fit(given, taps, activations, fed, pools)
        if max_norm is not None and [len(history) for history in histories] != [0] * (len(histories) - 1) + [
            1
        ]:
            raise ValueError(
                "a native scan of layers bounds the gradient of one state, that of the last layer"
            )
        result: tuple[Tensor, ...] = super().apply(
            u,
            tuple(taps),
            tuple(activations),
            tuple(fed),
            max_norm,
            in_bf16,
            tuple(pools),
            len(histories),
            *histories,
            *weights,
            *(pool.orders for pool in pools),
        )
        return result

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        taps: tuple[Tap, ...],
        activations: tuple[str, ...],
        fed: tuple[bool, ...],
        max_norm: float | None,
        in_bf16: bool,
        pools: tuple[Pool, ...],
        depth: int,
        *tensors: Any,
    ) -> tuple[Tensor, ...]:
        histories = tensors[:depth]
        weights = [weight.contiguous() for weight in tensors[depth : len(tensors) - len(pools)]]
        timelines = [u.new_empty(len(past) + len(u), *past.shape[1:]) for past in histories]
        for timeline, past in zip(timelines, histories, strict=True):
            timeline[: len(past)] = past.flip(0)
        places = [place for tap in taps for place in tap]
        parts = [int(is_fed) for is_fed in fed]
        none = u.new_empty(0)
        orders = [none if pool.orders is None else pool.orders.contiguous() for pool in pools]
        factors = [none if pool.factors is None else pool.factors.contiguous() for pool in pools]
        sources = [timelines[tap.source] for tap in taps[len(taps) - len(pools) :]]
        slopes = [u.new_empty(len(u), *line.shape[1:]) for line in sources]
        order_slopes = [none if p is none else u.new_empty(*u.shape[:2], len(p)) for p in orders]
        pooled = [pool.pieces for pool in pools], orders, factors, slopes, order_slopes
        operators().layers(
            u.contiguous(),
            timelines,
            weights,
            places,
            activations,
            parts,
            *pooled,
            in_bf16,
            torch.get_num_threads(),
        )
        ctx.save_for_backward(*timelines, *weights, *slopes, *order_slopes)
        ctx.constants = taps, activations, fed, max_norm, in_bf16, [pool.pieces for pool in pools], depth
        steps = len(u)
        return timelines[-1][-steps:], *(timeline[steps:].flip(0) for timeline in timelines)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, *grad_last: Tensor) -> tuple[Tensor | None, ...]:
        taps, activations, fed, max_norm, in_bf16, pieces, depth = ctx.constants
        count, saved = len(pieces), ctx.saved_tensors
        rest = len(saved) - 2 * count
        timelines, weights = saved[:depth], saved[depth:rest]
        slopes, order_slopes = saved[rest : rest + count], saved[rest + count :]
        steps, places = len(grad_y), [place for tap in taps for place in tap]
        # of layers that are heard: at later steps, or outside
        heard = [*(len(grad) > 0 for grad in grad_last[:-1]), True]
        gradients = [
            line.new_zeros(line.shape if is_heard else (0, *line.shape[1:]))
            for line, is_heard in zip(timelines, heard, strict=True)
        ]
        gradients[-1][-steps:] = grad_y
        for gradient, grad in zip(gradients, grad_last, strict=True):
            gradient[steps:] += grad.flip(0)
        arguments = operators().layers_backward(
            gradients,
            timelines,
            weights,
            places,
            activations,
            steps,
            max_norm,
            pieces,
            slopes,
            in_bf16,
            torch.get_num_threads(),
        )
        parts = arguments.split([line.size(-1) for line in timelines], dim=-1)
        of_fed = [part for part, is_fed in zip(parts, fed, strict=True) if is_fed]
        u = arguments if all(fed) else of_fed[0] if len(of_fed) == 1 else torch.cat(of_fed, dim=-1)
        products = []
        needs = ctx.needs_input_grad[8 + depth :]
        for tap, needed in zip(taps, needs[: len(weights)], strict=False):
            first = len(timelines[tap.source]) - steps - tap.lag
            heard_states = timelines[tap.source][first : first + steps]
            products.append(product_over_time(parts[tap.layer], heard_states, in_bf16) if needed else None)
        for tap, slope, needed in zip(
            taps[len(taps) - count :], order_slopes, needs[len(weights) :], strict=True
        ):
            products.append((parts[tap.layer] * slope).sum((0, 1)) if needed else None)
        histories = [
            gradient[: len(grad)].flip(0) for gradient, grad in zip(gradients, grad_last, strict=True)
        ]
        return u, None, None, None, None, None, None, None, *histories, *products


def parts_of(pool: Pool) -> dict[str, Tensor]:
    """The tensors that a pool has, by name."""
    named = {"orders": pool.orders, "factors": pool.factors}
    return {name: tensor for name, tensor in named.items() if tensor is not None}


def require_fit(
    given: Mapping[str, Tensor],
    taps: Sequence[Tap],
    activations: Sequence[str],
    fed: Sequence[bool],
    pools: Sequence[Pool],
) -> None:
    """Raise ValueError unless these tensors, by name, are the layers, histories and weights of these taps."""
    shapes = {name: tuple(tensor.shape) for name, tensor in given.items()}
    T, B, G = shapes["u"] if len(shapes["u"]) == 3 else (0, 0, 0)
    past = [shape for name, shape in shapes.items() if name.startswith("history")]
    weights = [shape for name, shape in shapes.items() if name.startswith("weight")]
    fits = (
        0 < len(past) == len(activations) == len(fed)
        and all(len(shape) == 3 and shape[1] == B and shape[2] for shape in past)
        and sum(shape[2] for shape, is_fed in zip(past, fed, strict=True) if is_fed) == G
        and 0 not in (T, B, G)
        and len(weights) + len(pools) <= len(taps)
        and all(0 <= tap.layer < len(past) and 0 <= tap.source < len(past) for tap in taps)
        and all((tap.source >= tap.layer) <= tap.lag <= past[tap.source][0] for tap in taps)
        and all(
            (past[tap.layer][2], past[tap.source][2])
            == (weights[i] if i < len(weights) else past[tap.layer][2:] * 2)
            for i, tap in enumerate(taps[: len(taps) - len(pools)])
        )
        and all(
            pool.pieces >= 1
            and tap.lag == 0
            and past[tap.source][2] == pool.pieces * past[tap.layer][2]
            and (pool.orders is None or tuple(pool.orders.shape) == past[tap.layer][2:])
            and (pool.factors is None or tuple(pool.factors.shape) == (T, B, past[tap.layer][2]))
            for tap, pool in zip(taps[len(taps) - len(pools) :], pools, strict=True)
        )
    )
    if not fits:
        raise ValueError(
            "native layers take u (T, B, units of the fed layers), and for each layer an activation and its history "
            "(K, B, N), K the largest lag at which it is heard, and for each tap a weight (N, N of what it hears), or "
            "none where the two are equal, or, at lag 0, a pool of pieces, with orders (N) and factors (T, B, N) or "
            "none; at lag 0 a layer hears those before it; all other sizes >= 1; got "
            f"{shapes} with {', '.join(activations)}, fed {list(fed)} and {', '.join(map(str, map(tuple, taps)))}"
        )
