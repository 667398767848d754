"""The sections of the benchmark: each returns its rows."""

import statistics
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning.pytorch.loggers import CSVLogger

from hornn.bench.meter import Meter, Row, memory_apart
from hornn.bench.plan import Plan
from hornn.bench.work import (
    CLIP,
    CPU,
    UPDATE,
    Sizes,
    TorchModel,
    Variant,
    Work,
    build,
    draw_text,
    head_step,
    linear_step,
    our_optimizer,
    our_step,
    products,
    runs_natively,
    score_with_torch,
    step_of,
    torch_step,
    train_on,
)
from hornn.data.streams import ChunkStream
from hornn.heads.base import resolve_precision
from hornn.heads.softmax import SoftmaxHead
from hornn.heads.two_level import TwoLevelSoftmaxHead
from hornn.module import TruncatedBptt
from hornn.network import SequenceModel
from hornn.optim.descent import MomentumSGD
from hornn.optim.schedules import Constant
from hornn.recipe import read_choice
from hornn.run.keeper import RunKeeper
from hornn.run.provenance import Starts
from hornn.run.train import build_trainer
from hornn.scan import BACKENDS
from hornn.use.scoring import AT_ONCE, score_stream

EPOCH = 1549  # steps: 929,589 tokens of Penn Treebank in whole chunks of 20 x 30
# Seconds per epoch on one TITAN X: Soltani's thesis, table 6.3, verified against its text.
RNN_SECONDS = 80
PUBLISHED = {
    ("rnn", None): RNN_SECONDS,
    ("hornn", 2): None,
    ("hornn", 3): 121,
    ("hornn", 4): None,
    ("hornn_max", 3): 122,
    ("hornn_fofe", 3): 120,
    ("lstm", None): 198,
    ("hornn_gated", 3): 225,
}
STEPS = {
    "rnn": "nn.RNN",
    "hornn": "nn.RNN",
    "hornn_max": "nn.RNN",
    "hornn_fofe": "nn.RNN",
    "hornn_gated": "nn.LSTM",
    "lstm": "nn.LSTM",
    "gru": "nn.GRU",
    "scrn": "nn.RNN",
}
NAIVE = {"hornn_fofe": "FOFE loop", "lstm": "LSTMCell loop"}
NAMED = tuple(backend for backend in BACKENDS if backend not in ("auto", "parallel"))


class Bench(NamedTuple):
    """A benchmark under way on `device`; `rows` holds the rows of the finished sections."""

    plan: Plan
    meter: Meter
    rows: list[Row]
    device: torch.device = CPU

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that are asked for by name: graphs are for GPUs."""
        return tuple(name for name in NAMED if name != "graph" or self.device != CPU)

    def compare(self, ours: Work, theirs: Work, rounds: int) -> Row:
        """How long each takes, by rounds in turn."""
        return self.meter.compare(self.meter.sampler(ours), self.meter.sampler(theirs), rounds)

    def compare_steps(
        self, work: str, variant: Variant, other: str | Variant, sizes: Sizes, rounds: int, **given: Any
    ) -> Row:
        """Our training step beside the step of a layer of `LAYERS`, or of another of our models.

        `given`: further arguments of our network.
        """

        def measure(network: SequenceModel) -> Row:
            ours = our_step(network, sizes)
            theirs = (
                torch_step(other, sizes, self.device)
                if isinstance(other, str)
                else step_of(other, sizes, self.device)
            )
            return {**self.compare(ours, theirs, rounds), "gflop": matrix_gflop(network, sizes)}

        name = other if isinstance(other, str) else other.model
        return self.row_of(work, variant, name, sizes, measure, **given)

    def row_of(
        self,
        work: str,
        variant: Variant,
        other: str,
        sizes: Sizes,
        measure: Callable[[SequenceModel], Row],
        **given: Any,
    ) -> Row:
        """What is asked for, what runs, and what `measure` finds of the network; or why it cannot run."""
        row = {"work": work, "ours": variant.model, "other": other}
        row |= {"backend": variant.backend, "precision": variant.precision}
        try:
            network = build(variant, sizes, self.device, **given)
        except ValueError as error:
            return {**row, "missing": str(error)}
        runs = {
            "scan": network.scan_backend,
            "dtype": network.head.precision,
            "loop_dtype": network.loop_precision,
            "native": network.native,
        }
        return {**row, **runs, **measure(network)}


def matrix_gflop(network: SequenceModel, sizes: Sizes) -> dict[str, float]:
    """GFLOP of the matrix products of one training step: 2 T B (weights used) 3, for cells and output layer.

    Each weight of a matrix takes a multiplication and an addition for each token, three times: in the forward
    pass, in the gradient of its input and in its own. The embedding is looked up, not multiplied. The third-order
    HORNN at 400 units and 10,000 words: 16.7.
    """
    weights = {"cells": 0, "head": 0}
    for name, parameter in network.named_parameters():
        if parameter.ndim > 1 and not name.startswith("embedding."):
            weights[name.partition(".")[0]] += parameter.numel()
    return {part: 6e-9 * sizes.seq_len * sizes.batch_size * count for part, count in weights.items()}


def step(bench: Bench) -> list[Row]:
    plan = bench.plan
    named = bench.backends
    asked = [(Variant(model, backend=backend), other) for model, other in STEPS.items() for backend in named]
    asked += [(Variant("hornn_fofe", backend=backend, precision="fp32"), "nn.RNN") for backend in named]
    asked += [(Variant(model), loop) for model, loop in NAIVE.items()]
    return [
        bench.compare_steps("training step", variant, other, plan.sizes, plan.rounds)
        for variant, other in asked
    ]


def thesis(bench: Bench) -> list[Row]:
    plan, rows = bench.plan, []
    for (model, taps), published in PUBLISHED.items():
        work = "epoch" if taps is None else f"epoch, order {taps}"
        row = bench.compare_steps(work, Variant(model, taps), Variant("rnn"), plan.sizes, plan.rounds)
        seconds = 1e-3 * EPOCH * row["ours_ms"]
        ratio = published / RNN_SECONDS if published else None
        published_as = {"published_seconds": published, "published_ratio": ratio}
        rows.append({**row, "epoch_seconds": seconds, **published_as})
    return rows


def order(bench: Bench) -> list[Row]:
    plan = bench.plan
    return [
        bench.compare_steps(f"order {n}", Variant(model, n), Variant(model, 1), plan.sizes, plan.few_rounds)
        for model in ("hornn_fofe", "hornn_gated")
        for n in plan.orders
    ]


def vary(field: str, symbol: str, values: str, bench: Bench) -> list[Row]:
    """One row for each of the plan's `values` of one field of the sizes."""
    plan, rows = bench.plan, []
    for value in getattr(plan, values):
        sizes, fofe = plan.sizes._replace(**{field: value}), Variant("hornn_fofe")
        rows.append(bench.compare_steps(f"{symbol} = {value:,}", fofe, "nn.RNN", sizes, plan.few_rounds))
    return rows


def evaluation(bench: Bench) -> list[Row]:
    plan = bench.plan
    ids = draw_text(plan.sizes.vocab_size, plan.scored_tokens).numpy()
    reference = TorchModel("nn.RNN", plan.sizes).to(bench.device)

    def measure(columns: int, length: int, network: SequenceModel) -> Row:
        ours = partial(score_stream, network, ids, 0, columns, max(length, AT_ONCE // columns))
        theirs = partial(score_with_torch, reference, ChunkStream(ids, 0, columns, length))
        times = bench.compare(ours, theirs, plan.rounds)
        speeds = {f"{side}_speed": 1e3 * len(ids) / times[f"{side}_ms"] for side in ("ours", "other")}
        return {**times, **speeds, "dtype": "fp32"}

    return [
        bench.row_of(
            f"{columns} x {length} tokens",
            Variant("hornn_fofe", backend=backend),
            "nn.RNN",
            plan.sizes,
            partial(measure, columns, length),
        )
        for columns, length in plan.scored_chunks
        for backend in bench.backends
    ]


def memory(bench: Bench) -> list[Row]:
    plan, device, rows = bench.plan, bench.device, []
    sizes = plan.sizes
    variants = [Variant("hornn_fofe", backend=backend) for backend in bench.backends]
    variants += [Variant("hornn_fofe", precision="fp32"), Variant("hornn_gated")]
    training = memory_apart(partial(torch_step, "nn.RNN", sizes, device), plan.processes, device)
    for variant in variants:
        beside = partial(memory_beside, training, partial(step_of, variant, sizes, device), device)
        rows.append(bench.row_of("training", variant, "nn.RNN", sizes, beside))
    sizes = plan.sizes._replace(vocab_size=plan.large_vocab)
    layer = memory_apart(partial(linear_step, sizes, device), plan.processes, device)
    for kind, precision in ((SoftmaxHead, "auto"), (SoftmaxHead, "fp32"), (TwoLevelSoftmaxHead, "fp32")):
        work = {
            "work": f"output layer, V = {sizes.vocab_size:,}",
            "ours": kind.__name__,
            "other": "nn.Linear",
        }
        dtype, native = resolve_precision(precision, device), runs_natively(precision, device)
        row: Row = {**work, "precision": precision, "dtype": dtype, "native": native}
        rows.append(row | memory_beside(layer, partial(head_step, kind, sizes, device, precision), device))
    return rows


def memory_beside(
    other: list[float],
    make: Callable[[], Work],
    device: torch.device = CPU,
    network: SequenceModel | None = None,
) -> Row:
    """The memory of our work, measured in as many processes as the other's; `network` is in none of them."""
    ours = memory_apart(make, len(other), device)
    medians = {"ours_mb": statistics.median(ours), "other_mb": statistics.median(other)}
    ranges = {"ours_range": [ours[0], ours[-1]], "other_range": [other[0], other[-1]]}
    return {**medians, **ranges, "ratio": medians["ours_mb"] / medians["other_mb"]}


def head(bench: Bench) -> list[Row]:
    plan, rows = bench.plan, []
    for width in plan.head_widths:
        sizes = plan.sizes._replace(hidden_size=width)
        ours, other = (head_step(kind, sizes, bench.device) for kind in (TwoLevelSoftmaxHead, SoftmaxHead))
        names = {"ours": "two-level softmax", "other": "full softmax", "precision": "fp32", "dtype": "fp32"}
        rows.append({"work": f"H = {width}", **names, **bench.compare(ours, other, plan.rounds)})
    return rows


def trainer(bench: Bench) -> list[Row]:
    """A short epoch as `src/train.py` runs it, with its module, callbacks and a csv logger, beside a bare loop.

    The trainer's time is the one it reports: from its first step to the end of the last, so without the
    checkpoints at the epoch's end. Each of its steps waits for the loss and the gradient's norm, on a GPU too.
    """
    from hornn.run.train import quiet_libraries

    quiet_libraries()
    plan, meter = bench.plan, bench.meter
    sizes = plan.sizes
    ids = draw_text(sizes.vocab_size, plan.updates * sizes.batch_size * sizes.seq_len).numpy()
    variant = Variant("hornn_fofe")
    managed = build(variant, sizes, bench.device)
    machine = "cpu" if bench.device == CPU else "gpu"
    config = {"trainer": {**read_choice("trainer", machine), "max_epochs": 1}}

    def stream(chunks: int) -> ChunkStream:
        tokens = ids[: chunks * sizes.batch_size * sizes.seq_len]
        return ChunkStream(tokens, 0, sizes.batch_size, sizes.seq_len)

    def fit() -> float:
        sgd = partial(MomentumSGD, **UPDATE, clip=CLIP)
        module = TruncatedBptt(managed, sgd, Constant(), seq_len=sizes.seq_len)
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
            keeper = RunKeeper(Path(folder), Starts({}))
            runner = build_trainer(config, keeper, {})
            runner.logger = CSVLogger(folder)
            runner.fit(module, stream(plan.updates), stream(1))
        return 1e3 * keeper.records[0]["seconds"] / plan.updates

    def measure(bare: SequenceModel) -> Row:
        def loop() -> float:
            optimizer, state = our_optimizer(bare), bare.initial_state(sizes.batch_size)
            started = meter.clock()
            for chunk in stream(plan.updates):
                inputs, targets = chunk.inputs.to(bench.device), chunk.targets.to(bench.device)
                state = train_on(bare, optimizer, inputs, targets, state)
            return 1e3 * (meter.clock() - started) / plan.updates

        fit()
        loop()
        return meter.compare(fit, loop, plan.few_rounds)

    return [bench.row_of("training step", variant, "bare loop", sizes, measure)]


def roofline(bench: Bench) -> list[Row]:
    """Each training step that was measured beside the time of its matrix products at the machine's peak.

    The peak is the best of some products of large square matrices; cells count at the peak of fp32, the output layer at
    the peak of its own precision.
    """
    n, rows = bench.plan.product, []
    peaks: dict[str, float] = {}
    for dtype in dict.fromkeys(("fp32", resolve_precision("auto", CPU))):
        found = {}
        for name, work in products(torch.randn(n, n), dtype):
            sample = bench.meter.sampler(work)
            found[name] = min(sample() for _ in range(bench.plan.rounds))
        fastest = min(found, key=found.__getitem__)
        ms = found[fastest]
        peaks[dtype] = 2e-6 * n**3 / ms
        names = {"work": f"{n:,} x {n:,} product", "ours": fastest, "precision": dtype, "dtype": dtype}
        rows.append({**names, "gflop": 2e-9 * n**3, "ms": ms, "speed": peaks[dtype]})
    for done in bench.rows:
        if done["section"] != "step" or "missing" in done or done["other"] in NAIVE.values():
            continue
        parts, ms = done["gflop"], done["ours_ms"]
        bound = 1e3 * (parts["cells"] / peaks[done["loop_dtype"]] + parts["head"] / peaks[done["dtype"]])
        other = {"gflop", "ours_ms", "other", "other_ms", "ratio", "spread", "section"}
        names = {key: value for key, value in done.items() if key not in other}
        total = sum(parts.values())
        times = {"ms": ms, "speed": 1e3 * total / ms, "bound_ms": bound, "reached": bound / ms}
        rows.append({**names, "gflop": total, **times})
    return rows
