"""The deferred scan: in a step only what the next step waits for, everything else once for all time.

It runs any cell that says its step as a `hornn.cells.recurrence.Recurrence`, in torch operations alone.

Forward, for each step: the pointwise functions, and for each register one product with all matrices that later
functions need of it, packed. Backward: the derivatives of the pointwise functions for all time at once; then, for
each step from the last to the first, the gradient of each register, one product with the packed matrices
again; then the gradients of the projected input, of the vectors and of the weights for all time at once, those of
one register's matrices as a single product over T * B rows.

In all buffers (T + K, B, width) time runs backwards: row 0 is the last step, row T the newest value before the
first step, so that the first K rows are the state after the scan and the last K that before it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hornn.cells.recurrence import Input, Past, Recurrence, Register, Taps, Vector, find_partials


class Products(NamedTuple):
    """The packed matrices of one register: those used in its own step (`now`), or those used later."""

    register: int
    now: bool
    rows: int


class Window(NamedTuple):
    """Where a `Taps` operand finds its products in the buffer of its `Products`: (T, [K,] B, [n,] width)."""

    products: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    stacked: bool  # whether there is an axis K

    def view(self, buffers: list[Tensor]) -> Tensor:
        return buffers[self.products].as_strided(self.size, self.stride, self.offset)


class Plan(NamedTuple):
    """The layout of one scan: everything but the tensors."""

    steps: int
    registers: tuple[Register, ...]
    number: dict[str, int]  # of a register, by its name
    depths: tuple[int, ...]  # past values of each register in the state
    output: tuple[str, ...]
    products: tuple[Products, ...]
    windows: dict[tuple[int, int], Window]  # (register, operand) -> where a Taps finds its products
    vectors: dict[tuple[int, int], int]  # (register, operand) -> which of the vectors a Vector is
    state_grad_norm: float | None


def find_obstacle(recurrence: Recurrence | None, state_grad_norm: float | None) -> str | None:
    """Why a cell with this recurrence cannot be deferred; None if it can."""
    if recurrence is None:
        return "the cell does not declare its step as linear maps and pointwise functions"
    if state_grad_norm is not None and max(map(reach, operands_of(recurrence)), default=0) > 1:
        return "network.state_grad_norm bounds the gradient of a state that holds several steps"
    return None


def operands_of(recurrence: Recurrence) -> list[Any]:
    return [operand for register in recurrence.registers for operand in register.operands]


def reach(operand: Any) -> int:
    """How many steps back an operand looks."""
    if isinstance(operand, Taps) and operand.weight.ndim == 3:
        return operand.lag + operand.weight.size(0) - 1
    return operand.lag if isinstance(operand, Taps | Past) else 0


def deferred_scan(
    recurrence: Recurrence, u: Tensor, state: Any, state_grad_norm: float | None = None
) -> tuple[Tensor, Any]:
    """Run `recurrence` over the projected inputs u (T, B, G) from `state`: y (T, B, W) and the state after them."""
    histories = read_state(recurrence, state)
    plan, weights, vectors = lay_out(recurrence, histories, u, state_grad_norm)
    kept = [register.name for register in recurrence.registers if register.name in histories]
    y, *last = DeferredScan.apply(plan, u, *weights, *vectors, *(histories[name] for name in kept))
    return y, write_state(recurrence, state, dict(zip(kept, last, strict=True)))


def read_state(recurrence: Recurrence, state: Any) -> dict[str, Tensor]:
    """The past values (K, B, W) of each register that the state holds."""
    histories: dict[str, Tensor] = {}
    for names, tensor in zip(recurrence.state, state, strict=True):
        if isinstance(names, tuple):
            histories.update(zip(names, tensor.split(1), strict=True))
        else:
            histories[names] = tensor if tensor.ndim == 3 else tensor.unsqueeze(0)
    return histories


def write_state(recurrence: Recurrence, state: Any, histories: dict[str, Tensor]) -> Any:
    """The inverse of `read_state`, in the form of `state`."""
    fields = []
    for names, tensor in zip(recurrence.state, state, strict=True):
        if isinstance(names, tuple):
            fields.append(torch.cat([histories[name] for name in names]))
        else:
            fields.append(histories[names] if tensor.ndim == 3 else histories[names].squeeze(0))
    return type(state)(*fields)


def lay_out(
    recurrence: Recurrence, histories: dict[str, Tensor], u: Tensor, state_grad_norm: float | None
) -> tuple[Plan, list[Tensor], list[Tensor]]:
    """The plan of a scan, the packed matrices of its products and its vectors."""
    registers = recurrence.registers
    number = {register.name: i for i, register in enumerate(registers)}
    steps, batch, _ = u.shape
    groups: dict[tuple[int, bool], list[tuple[tuple[int, int], Taps]]] = {}
    places: dict[tuple[int, int], int] = {}
    vectors: list[Tensor] = []
    for i, register in enumerate(registers):
        for j, operand in enumerate(register.operands):
            if isinstance(operand, Taps):
                groups.setdefault((number[operand.register], operand.lag == 0), []).append(((i, j), operand))
            elif isinstance(operand, Vector):
                places[i, j] = len(vectors)
                vectors.append(operand.value)
    products: list[Products] = []
    weights: list[Tensor] = []
    windows: dict[tuple[int, int], Window] = {}
    for (source, now), members in groups.items():
        matrices = [taps.weight.flatten(0, -2) for _, taps in members]
        weights.append(matrices[0] if len(matrices) == 1 else torch.cat(matrices))
        rows, first = weights[-1].size(0), 0
        for ((i, j), taps), matrix in zip(members, matrices, strict=True):
            count, width, stacked = taps.weight.size(-2), registers[i].width, taps.weight.ndim == 3
            axes = [(steps, batch * rows)]
            if stacked:  # the next lag: one step back and one block on
                axes.append((taps.weight.size(0), batch * rows + count))
            axes.append((batch, rows))
            if count > width:
                axes.append((count // width, width))
            size, stride = zip(*axes, (width, 1), strict=True)
            windows[i, j] = Window(len(products), size, stride, taps.lag * batch * rows + first, stacked)
            first += matrix.size(0)
        products.append(Products(source, now, rows))
    depths = tuple(histories[r.name].size(0) if r.name in histories else 0 for r in registers)
    plan = Plan(
        steps,
        registers,
        number,
        depths,
        recurrence.output,
        tuple(products),
        windows,
        places,
        state_grad_norm,
    )
    return plan, weights, vectors


def find_operand(
    plan: Plan, i: int, j: int, u: Tensor, values: list[Tensor], buffers: list[Tensor], vectors: list[Tensor]
) -> Tensor:
    """Operand j of register i for all time, newest step first; u too runs backwards. A view, time first."""
    operand = plan.registers[i].operands[j]
    if isinstance(operand, Input):
        columns = u[..., operand.start : operand.stop]
        width = plan.registers[i].width
        return columns if columns.size(-1) == width else columns.unflatten(-1, (-1, width))
    if isinstance(operand, Taps):
        return plan.windows[i, j].view(buffers)
    if isinstance(operand, Past):
        return values[plan.number[operand.register]][operand.lag : operand.lag + plan.steps]
    vector = vectors[plan.vectors[i, j]]
    return vector.expand(plan.steps, *vector.shape)


class DeferredScan(torch.autograd.Function):
    """The scan that a `Plan` describes; `deferred` tells how. Once differentiable."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, u: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """u (T, B, G), packed matrices, vectors, past values -> y (T, B, W), the last values (K, B, W) of each."""
        weights, vectors, past = split(plan, tensors)
        steps, batch = plan.steps, u.size(1)
        values, later = [], iter(past)
        for register, depth in zip(plan.registers, plan.depths, strict=True):
            buffer = u.new_empty(steps + depth, batch, register.width)
            if depth:
                buffer[steps:] = next(later)
            values.append(buffer)
        buffers = []
        for (source, now, rows), weight in zip(plan.products, weights, strict=True):
            buffer = u.new_empty(steps + (0 if now else plan.depths[source]), batch, rows)
            buffer[steps:] = values[source][steps:][: len(buffer) - steps] @ weight.mT
            buffers.append(buffer)
        newest_first = u.flip(0)
        run = []
        for i, register in enumerate(plan.registers):
            operands = [
                find_operand(plan, i, j, newest_first, values, buffers, vectors).unbind(0)
                for j in range(len(register.operands))
            ]
            uses = [
                (product.now, weight.mT, buffer.unbind(0))
                for product, weight, buffer in zip(plan.products, weights, buffers, strict=True)
                if product.register == i
            ]
            run.append((register.function, list(zip(*operands, strict=True)), values[i].unbind(0), uses))
        for s in range(steps - 1, -1, -1):
            for function, operands_at, slots, uses in run:
                value = slots[s].copy_(function(*operands_at[s]))
                for now, matrix, rows_at in uses:
                    if now or s:  # nothing later needs the last step's
                        torch.mm(value, matrix, out=rows_at[s])
        ctx.plan = plan
        ctx.save_for_backward(newest_first, *weights, *vectors, *values, *buffers)
        ctx.set_materialize_grads(False)
        y = [values[plan.number[name]][:steps].flip(0) for name in plan.output]
        last = [value[:depth].clone() for value, depth in zip(values, plan.depths, strict=True) if depth]
        return y[0] if len(y) == 1 else torch.cat(y, dim=-1), *last

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        plan: Plan = ctx.plan
        u, *saved = ctx.saved_tensors
        weights, vectors, rest = split(plan, saved)
        values, buffers = rest[: len(plan.registers)], rest[len(plan.registers) :]
        slopes = [find_slopes(plan, i, u, values, buffers, vectors) for i in range(len(plan.registers))]
        totals = start_gradients(plan, values, grads)
        # What flows back into a state is bounded before what flows into the output at that step is added.
        bounded = plan.state_grad_norm is not None
        carried = [torch.zeros_like(total) for total in totals] if bounded else totals
        into = [
            start_products(plan, product, buffer)
            for product, buffer in zip(plan.products, buffers, strict=True)
        ]

        run = []
        for i in reversed(range(len(plan.registers))):
            uses = [
                (product.now, weight, rows.unbind(0))
                for product, weight, rows in zip(plan.products, weights, into, strict=True)
                if product.register == i
            ]
            sinks = [
                sink
                for j, slope in enumerate(slopes[i])
                if (sink := find_sink(plan, i, j, slope, totals, carried, into)) is not None
            ]
            run.append((totals[i].unbind(0), carried[i].unbind(0), uses, sinks))
        for s in range(plan.steps):
            for total_at, carried_at, uses, sinks in run:
                for now, weight, rows_at in uses:
                    if now:
                        total_at[s].addmm_(rows_at[s], weight)
                    elif s:
                        carried_at[s].addmm_(rows_at[s], weight)
                if plan.state_grad_norm is not None:
                    total_at[s].add_(bound_norm(carried_at[s], plan.state_grad_norm))
                for send in sinks:
                    send(s, total_at[s])

        steps = plan.steps
        grad_u = torch.zeros_like(u)
        grad_vectors = [torch.zeros_like(vector) for vector in vectors]
        for i, register in enumerate(plan.registers):
            for j, operand in enumerate(register.operands):
                total, slope = totals[i][:steps], slopes[i][j]
                if isinstance(operand, Input) and register.width:
                    columns = grad_u[..., operand.start : operand.stop].unflatten(-1, (-1, register.width))
                    columns.addcmul_(total.unsqueeze(-2), slope if slope.ndim == 4 else slope.unsqueeze(-2))
                elif isinstance(operand, Vector):
                    grad_vectors[plan.vectors[i, j]] += (total * slope).sum((0, 1))
        grad_weights = [
            rows.flatten(0, 1).mT @ values[source][: len(rows)].flatten(0, 1)
            for (source, _, _), rows in zip(plan.products, into, strict=True)
        ]
        grad_past = []
        for i, depth in enumerate(plan.depths):
            if depth:
                for (source, now, _), weight, rows in zip(plan.products, weights, into, strict=True):
                    if source == i and not now:
                        carried[i][steps:] += rows[steps:] @ weight
                if plan.state_grad_norm is not None:
                    totals[i][steps:] += bound_norm(carried[i][steps:], plan.state_grad_norm)
                grad_past.append(totals[i][steps:])
        return None, grad_u.flip(0), *grad_weights, *grad_vectors, *grad_past


def split(plan: Plan, tensors: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The packed matrices, the vectors and the rest of the scan's tensors."""
    end = len(plan.products) + len(plan.vectors)
    return list(tensors[: len(plan.products)]), list(tensors[len(plan.products) : end]), list(tensors[end:])


def start_gradients(plan: Plan, values: list[Tensor], grads: Sequence[Tensor | None]) -> list[Tensor]:
    """The gradient of each register's values as far as it comes from the outputs and the state at the end."""
    totals = [torch.zeros_like(value) for value in values]
    grad_y, *grad_last = grads
    if grad_y is not None:
        widths = [plan.registers[plan.number[name]].width for name in plan.output]
        for name, part in zip(plan.output, grad_y.flip(0).split(widths, dim=-1), strict=True):
            totals[plan.number[name]][: plan.steps] += part
    kept = [i for i, depth in enumerate(plan.depths) if depth]
    for i, grad in zip(kept, grad_last, strict=True):
        if grad is not None:
            totals[i][: plan.depths[i]] += grad
    return totals


def start_products(plan: Plan, product: Products, buffer: Tensor) -> Tensor:
    """Room for the gradient of products; zero where, near either end of time, no step uses some of them."""
    room = torch.empty_like(buffer)
    if not product.now:
        depth = plan.depths[product.register]
        room[:depth].zero_()
        room[plan.steps :].zero_()
    return room


def find_slopes(
    plan: Plan, i: int, u: Tensor, values: list[Tensor], buffers: list[Tensor], vectors: list[Tensor]
) -> list[Tensor]:
    """The derivative of register i with respect to each of its operands, for all time at once."""
    register, result = plan.registers[i], values[i][: plan.steps]
    if hasattr(register.function, "slope"):
        return [register.function.slope(result)] * len(register.operands)
    operands = []
    for j, operand in enumerate(register.operands):
        tensor = find_operand(plan, i, j, u, values, buffers, vectors)
        if isinstance(operand, Vector):
            tensor = tensor[0]
        elif isinstance(operand, Taps) and plan.windows[i, j].stacked:
            tensor = tensor.transpose(0, 1)
        operands.append(tensor)
    return find_partials(register.function, result, operands)


def find_sink(
    plan: Plan,
    i: int,
    j: int,
    slope: Tensor,
    totals: list[Tensor],
    carried: list[Tensor],
    into: list[Tensor],
) -> Callable[[int, Tensor], Any] | None:
    """How a step hands the gradient of register i on to its operand j; None where that waits for the end."""
    operand = plan.registers[i].operands[j]
    if isinstance(operand, Past):
        lag, source = operand.lag, plan.number[operand.register]
        rows, slopes = (carried if lag else totals)[source].unbind(0), slope.unbind(0)
        return lambda s, total: rows[s + lag].addcmul_(total, slopes[s])
    if isinstance(operand, Taps):
        window = plan.windows[i, j]
        out = window.view(into)
        targets = out.unbind(0)
        if window.stacked and slope.ndim == out.ndim:
            slope = slope.transpose(0, 1)
        slopes = slope.unbind(0)
        if len(window.size) - window.stacked == 4:
            return lambda s, total: torch.mul(total.unsqueeze(-2), slopes[s], out=targets[s])
        if slope.ndim == out.ndim:
            return lambda s, total: torch.mul(total, slopes[s], out=targets[s])
        return lambda s, total: targets[s].copy_(total * slopes[s])
    return None


def bound_norm(grad: Tensor, max_norm: float) -> Tensor:
    """The gradient scaled to Euclidean norm c = `max_norm` where its norm exceeds c."""
    return grad * (max_norm / torch.linalg.vector_norm(grad)).clamp(max=1.0)
