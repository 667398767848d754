"""The benchmark: our code beside what a user would otherwise take, in turn in one process, as ratios.

A row times two ways to do the same work, round by round: a round is one sample of each, and its ratio is
ours / other. Rounds in which other processes took more than `QUIET` of a core are dropped. Times are medians
over the rounds kept, the ratio is the median of their ratios, the spread its least and largest.
"""

import gc
import json
import math
import multiprocessing
import os
import platform
import resource
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import require_positive
from hornn.data.streams import IGNORE, Blocks, ChunkStream
from hornn.heads import Head, SoftmaxHead, TwoLevelSoftmaxHead, resolve_precision
from hornn.inference import score_stream
from hornn.kernels import native
from hornn.module import TruncatedBptt, match
from hornn.network import LanguageModel, detach_all
from hornn.optim import Constant, MomentumSGD
from hornn.process import set_up_process
from hornn.result import write_atomically, write_between
from hornn.scan import BACKENDS

SCHEMA_VERSION = 1
ROOT = Path(__file__).parents[2]
MODELS, TRAINER = ROOT / "conf" / "model", ROOT / "conf" / "trainer" / "cpu.yaml"
CPU = torch.device("cpu")
QUIET = 0.05  # cores that other processes may use in a round that counts
PATIENCE = 4  # times as many rounds as wanted, before a row is given up as never quiet
UPDATE: dict[str, Any] = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-5}
CLIP = 5.0
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

Row = dict[str, Any]
Work = Callable[[], object]  # does the work once
Sampler = Callable[[], float]  # does the work for a while, returns ms for once


class Sizes(NamedTuple):
    """Of a network and its chunk; Penn Treebank in the HORNN paper."""

    vocab_size: int = 10_000
    hidden_size: int = 400
    batch_size: int = 20
    seq_len: int = 30

    def __str__(self) -> str:
        return f"V = {self.vocab_size:,}, H = {self.hidden_size}, {self.batch_size} x {self.seq_len} tokens"


class Plan(NamedTuple):
    """What the sections measure, and for how long."""

    sizes: Sizes = Sizes()
    rounds: int = 15
    few_rounds: int = 5  # in series over a size
    seconds: float = 0.25  # least length of a sample: /proc/stat counts in hundredths
    orders: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    hidden_sizes: tuple[int, ...] = (100, 200, 400, 1000, 2000)
    vocab_sizes: tuple[int, ...] = (10_000, 20_000, 44_000)
    seq_lens: tuple[int, ...] = (10, 30, 100)
    batch_sizes: tuple[int, ...] = (1, 20, 64, 128)
    scored_tokens: int = 6_000
    scored_chunks: tuple[tuple[int, int], ...] = ((1, 300), (20, 30))  # columns, chunk length
    processes: int = 3  # whose peaks of memory are taken; the same work differs by a third between them
    large_vocab: int = 44_000  # of the output layer whose memory is measured; text8's
    head_widths: tuple[int, ...] = (100, 400)
    product: int = 2048  # rows and columns of the matrices that show the machine's peak
    updates: int = 40  # of the epoch that shows what the trainer costs


FULL = Plan()
QUICK = Plan(
    sizes=Sizes(vocab_size=50, hidden_size=8, batch_size=3, seq_len=4),
    rounds=2,
    few_rounds=1,
    seconds=0.0,
    orders=(1, 2),
    hidden_sizes=(4, 8),
    vocab_sizes=(20, 50),
    seq_lens=(2, 4),
    batch_sizes=(1, 3),
    scored_tokens=40,
    scored_chunks=((1, 10), (3, 4)),
    processes=1,
    large_vocab=100,
    head_widths=(8,),
    product=32,
    updates=3,
)


# -- what is measured ----------------------------------------------------------------------------------------


class Variant(NamedTuple):
    """One of our models (conf/model) as it is asked for."""

    model: str
    order: int | None = None
    backend: str = "auto"
    precision: str = "auto"


def build(variant: Variant, sizes: Sizes) -> LanguageModel:
    """The network, ready to run. ValueError where its backend cannot run that cell, or not on this machine."""
    arguments = {"hidden_size": sizes.hidden_size, **({"order": variant.order} if variant.order else {})}
    cell = instantiate(OmegaConf.merge(OmegaConf.load(MODELS / f"{variant.model}.yaml"), arguments))
    counts = zipf_counts(sizes.vocab_size)
    network = LanguageModel(counts, cell, precision=variant.precision, backend=variant.backend)
    network.prepare(CPU)
    return network


def our_step(network: LanguageModel, sizes: Sizes) -> Work:
    """One training step: forward and backward pass, update."""
    optimizer = our_optimizer(network)
    inputs, targets = batch(sizes)
    return lambda: train_on(network, optimizer, inputs, targets, network.initial_state(sizes.batch_size))


def step_of(variant: Variant, sizes: Sizes) -> Work:
    """The training step of a variant, from its name: what a fresh process can be asked for."""
    return our_step(build(variant, sizes), sizes)


def our_optimizer(network: LanguageModel) -> MomentumSGD:
    optimizer = MomentumSGD(network.parameters(), **UPDATE, clip=CLIP)
    match(network, optimizer)
    return optimizer


def train_on(
    network: LanguageModel, optimizer: MomentumSGD, inputs: Tensor, targets: Tensor, state: Any
) -> Any:
    """The state after one step on a chunk, cut off from its history."""
    optimizer.zero_grad()
    features, state = network(inputs, state)
    network.head.loss(features, targets, 1 / targets.numel()).backward()
    optimizer.step()
    return detach_all(state)


class LstmLoop(nn.Module):
    """An LSTM as a loop over nn.LSTMCell."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(width, width, bias=False)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        outputs = []
        for x_t in x:
            state = self.cell(x_t, state)
            outputs.append(state[0])
        return torch.stack(outputs), state


class FofeLoop(nn.Module):
    """h_t = sigmoid(W_in x_t + sum_n 0.6^n W_n h_{t-n}), n = 1, 2, 3, one nn.Linear for each matrix."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.W_in = nn.Linear(width, width, bias=False)
        self.taps = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        history = state or [torch.zeros_like(x[0]) for _ in self.taps]
        outputs = []
        for x_t in x:
            signal = self.W_in(x_t)
            for n, (tap, h) in enumerate(zip(self.taps, history, strict=True), start=1):
                signal = signal + 0.6**n * tap(h)
            history = [torch.sigmoid(signal), *history[:-1]]
            outputs.append(history[0])
        return torch.stack(outputs), history


LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "nn.RNN": lambda width: nn.RNN(width, width, bias=False),
    "nn.LSTM": lambda width: nn.LSTM(width, width, bias=False),
    "nn.GRU": lambda width: nn.GRU(width, width, bias=False),
    "LSTMCell loop": LstmLoop,
    "FOFE loop": FofeLoop,
}


class TorchModel(nn.Module):
    """What a user would write: nn.Embedding, a recurrent layer, nn.Linear, cross entropy; all in fp32."""

    def __init__(self, layer: str, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.layer = LAYERS[layer](sizes.hidden_size)
        self.output = nn.Linear(sizes.hidden_size, sizes.vocab_size, bias=False)

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Logits (T B, V) and the state after them."""
        y, state = self.layer(self.embedding(inputs), state)
        return self.output(y).flatten(0, 1), state


def torch_step(layer: str, sizes: Sizes) -> Work:
    """One training step of that model under torch's own SGD."""
    model = TorchModel(layer, sizes)
    optimizer = torch.optim.SGD(model.parameters(), **UPDATE)
    inputs, targets = batch(sizes)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs)[0], targets.flatten()).backward()
        nn.utils.clip_grad_value_(model.parameters(), CLIP)
        optimizer.step()

    return step


@torch.inference_mode()
def score_with_torch(model: TorchModel, stream: ChunkStream) -> Tensor:
    """Negative log-likelihood of every token of a stream, with carried state."""
    state, scores = None, []
    for chunk in stream:
        logits, state = model(chunk.inputs, state)
        scores.append(F.cross_entropy(logits, chunk.targets.flatten(), ignore_index=IGNORE, reduction="none"))
    return torch.cat(scores)


def head_step(head: Callable[..., Head], sizes: Sizes, precision: str = "fp32") -> Work:
    """Forward and backward pass of one of our output layers alone; with precision `auto` as in training."""
    layer = head(input_size=sizes.hidden_size, counts=zipf_counts(sizes.vocab_size))
    layer.precision = resolve_precision(precision, CPU)
    layer.native = runs_natively(precision)
    features = torch.randn(sizes.seq_len, sizes.batch_size, sizes.hidden_size, requires_grad=True)
    targets = batch(sizes)[1]

    def step() -> None:
        layer.zero_grad()
        layer.loss(features, targets).backward()

    return step


def runs_natively(precision: str) -> bool:
    """Whether an output layer of that precision alone uses the native kernels."""
    return precision == "auto" and native.why_not() is None


def linear_step(sizes: Sizes) -> Work:
    """The same with nn.Linear and cross entropy."""
    layer = nn.Linear(sizes.hidden_size, sizes.vocab_size, bias=False)
    features = torch.randn(sizes.seq_len * sizes.batch_size, sizes.hidden_size, requires_grad=True)
    targets = batch(sizes)[1].flatten()

    def step() -> None:
        layer.zero_grad()
        F.cross_entropy(layer(features), targets).backward()

    return step


def zipf_counts(vocab_size: int) -> list[int]:
    """Word counts as in a natural text: the r-th word occurs in proportion to 1/r."""
    return [1_000_000 // rank for rank in range(1, vocab_size + 1)]


def draw_text(vocab_size: int, length: int) -> Tensor:
    """Token ids drawn by those counts."""
    weights = torch.tensor(zipf_counts(vocab_size), dtype=torch.float64)
    return torch.multinomial(weights, length, replacement=True)


def batch(sizes: Sizes) -> tuple[Tensor, Tensor]:
    """Inputs and targets (T, B)."""
    count = sizes.seq_len * sizes.batch_size
    ids = draw_text(sizes.vocab_size, 2 * count).view(2, sizes.seq_len, sizes.batch_size)
    return ids[0], ids[1]


# -- how it is measured --------------------------------------------------------------------------------------


def cpu_of_others(statistics_file: Path = Path("/proc/stat")) -> float | None:
    """Seconds of CPU that all but this process have used, up to a constant; None where the system does not tell.

    Other virtual machines on our cores count too. The file's first line holds clock ticks: user, nice, system,
    idle, iowait, irq, softirq, steal.
    """
    try:
        fields = statistics_file.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields[1:9])
    busy = user + nice + system + irq + softirq + steal
    return busy / os.sysconf("SC_CLK_TCK") - time.process_time() if busy else None


@contextmanager
def garbage_kept() -> Iterator[None]:
    """No garbage collection inside."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Meter(NamedTuple):
    """Takes times: `clock` in seconds, `others` the seconds of CPU that other processes have used (None: unknown)."""

    seconds: float = 0.25  # least length of a sample
    clock: Callable[[], float] = time.perf_counter
    others: Callable[[], float | None] = cpu_of_others

    def sampler(self, work: Work) -> Sampler:
        """Warm up, and repeat the work as often as a sample's length asks for."""
        work()
        started = self.clock()
        work()
        once = self.clock() - started
        count = max(1, math.ceil(self.seconds / once)) if once else 1

        def sample() -> float:
            started = self.clock()
            for _ in range(count):
                work()
            return 1e3 * (self.clock() - started) / count

        return sample

    def compare(self, ours: Sampler, other: Sampler, rounds: int) -> Row:
        """The two in turn until `rounds` quiet rounds are there, or `PATIENCE` times as many are over.

        A row that never got quiet tells of all its rounds. `quiet` is None where nothing is known of other
        processes: every round counts.
        """
        taken: list[tuple[float, float]] = []
        kept: list[tuple[float, float]] = []
        filtered = self.others() is not None
        with garbage_kept():
            while len(kept) < rounds and len(taken) < PATIENCE * rounds:
                before, started = self.others(), self.clock()
                taken.append((ours(), other()))
                elapsed, after = self.clock() - started, self.others()
                if before is None or after is None or after - before <= QUIET * elapsed:
                    kept.append(taken[-1])
        quiet = len(kept) == rounds
        samples = kept if quiet else taken
        ratios = [a / b for a, b in samples]
        return {
            "ours_ms": statistics.median(a for a, _ in samples),
            "other_ms": statistics.median(b for _, b in samples),
            "ratio": statistics.median(ratios),
            "spread": [min(ratios), max(ratios)],
            "rounds": len(samples),
            "dropped": len(taken) - len(kept),
            "quiet": quiet if filtered else None,
        }


def peak_memory_mb() -> float:
    """The most memory that was resident in this process so far."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # ru_maxrss begins at the parent's size on Linux; elsewhere it is all there is
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**10


def memory_of(make: Callable[[], Work], times: int = 5) -> float:
    """MB that the peak rises by while the work is made and done a few times; in a process that did nothing else."""
    before = peak_memory_mb()
    work = make()
    for _ in range(times):
        work()
    return peak_memory_mb() - before


def memory_apart(make: Callable[[], Work], processes: int) -> list[float]:
    """`memory_of` in fresh processes, one after the other, in rising order."""
    return sorted(apart(memory_of, make) for _ in range(processes))


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Bench(NamedTuple):
    """A benchmark under way; `rows` holds those of the sections that are done."""

    plan: Plan
    meter: Meter
    rows: list[Row]

    def compare_steps(
        self, work: str, variant: Variant, other: str | Variant, sizes: Sizes, rounds: int
    ) -> Row:
        """Our training step beside that of a layer of `LAYERS`, or of another of our models."""

        def measure(network: LanguageModel) -> Row:
            ours = our_step(network, sizes)
            theirs = torch_step(other, sizes) if isinstance(other, str) else step_of(other, sizes)
            times = self.meter.compare(self.meter.sampler(ours), self.meter.sampler(theirs), rounds)
            return {**times, "gflop": matrix_gflop(network, sizes)}

        return row_of(work, variant, other if isinstance(other, str) else other.model, sizes, measure)


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
FOREMOST = ("step", "thesis", "evaluation", "memory", "trainer")  # in the README
NAMED = tuple(backend for backend in BACKENDS if backend not in ("auto", "parallel"))


# -- sections: each returns its rows -------------------------------------------------------------------------


def row_of(
    work: str, variant: Variant, other: str, sizes: Sizes, measure: Callable[[LanguageModel], Row]
) -> Row:
    """What is asked for, what runs, and what `measure` finds of the network; or why it cannot run."""
    row = {"work": work, "ours": variant.model, "other": other}
    row |= {"backend": variant.backend, "precision": variant.precision}
    try:
        network = build(variant, sizes)
    except ValueError as error:
        return {**row, "missing": str(error)}
    runs = {"scan": network.scan_backend, "dtype": network.head.precision, "native": network.native}
    return {**row, **runs, **measure(network)}


def matrix_gflop(network: LanguageModel, sizes: Sizes) -> dict[str, float]:
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
    asked = [(Variant(model, backend=backend), other) for model, other in STEPS.items() for backend in NAMED]
    asked += [(Variant("hornn_fofe", backend=backend, precision="fp32"), "nn.RNN") for backend in NAMED]
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
    plan, meter = bench.plan, bench.meter
    ids = draw_text(plan.sizes.vocab_size, plan.scored_tokens).numpy()
    reference = TorchModel("nn.RNN", plan.sizes)

    def measure(columns: int, length: int, network: LanguageModel) -> Row:
        ours = partial(score_stream, network, ids, 0, columns, length)
        theirs = partial(score_with_torch, reference, ChunkStream(ids, 0, columns, length))
        times = meter.compare(meter.sampler(ours), meter.sampler(theirs), plan.rounds)
        speeds = {f"{side}_speed": 1e3 * len(ids) / times[f"{side}_ms"] for side in ("ours", "other")}
        return {**times, **speeds, "dtype": "fp32"}

    return [
        row_of(
            f"{columns} x {length} tokens",
            Variant("hornn_fofe", backend=backend),
            "nn.RNN",
            plan.sizes,
            partial(measure, columns, length),
        )
        for columns, length in plan.scored_chunks
        for backend in NAMED
    ]


def memory(bench: Bench) -> list[Row]:
    plan, rows = bench.plan, []
    sizes = plan.sizes
    variants = [Variant("hornn_fofe", backend=backend) for backend in NAMED]
    variants += [Variant("hornn_fofe", precision="fp32"), Variant("hornn_gated")]
    training = memory_apart(partial(torch_step, "nn.RNN", sizes), plan.processes)
    for variant in variants:
        make = partial(step_of, variant, sizes)
        rows.append(row_of("training", variant, "nn.RNN", sizes, partial(memory_beside, training, make)))
    sizes = plan.sizes._replace(vocab_size=plan.large_vocab)
    layer = memory_apart(partial(linear_step, sizes), plan.processes)
    for kind, precision in ((SoftmaxHead, "auto"), (SoftmaxHead, "fp32"), (TwoLevelSoftmaxHead, "fp32")):
        work = {
            "work": f"output layer, V = {sizes.vocab_size:,}",
            "ours": kind.__name__,
            "other": "nn.Linear",
        }
        dtype = resolve_precision(precision, CPU)
        row: Row = {**work, "precision": precision, "dtype": dtype, "native": runs_natively(precision)}
        rows.append(row | memory_beside(layer, partial(head_step, kind, sizes, precision)))
    return rows


def memory_beside(other: list[float], make: Callable[[], Work], network: LanguageModel | None = None) -> Row:
    """The memory of our work in as many processes as of the other's, none of them that of `network`."""
    ours = memory_apart(make, len(other))
    medians = {"ours_mb": statistics.median(ours), "other_mb": statistics.median(other)}
    ranges = {"ours_range": [ours[0], ours[-1]], "other_range": [other[0], other[-1]]}
    return {**medians, **ranges, "ratio": medians["ours_mb"] / medians["other_mb"]}


def head(bench: Bench) -> list[Row]:
    plan, meter, rows = bench.plan, bench.meter, []
    for width in plan.head_widths:
        sizes = plan.sizes._replace(hidden_size=width)
        ours, other = (meter.sampler(head_step(kind, sizes)) for kind in (TwoLevelSoftmaxHead, SoftmaxHead))
        names = {"ours": "two-level softmax", "other": "full softmax", "precision": "fp32", "dtype": "fp32"}
        rows.append({"work": f"H = {width}", **names, **meter.compare(ours, other, plan.rounds)})
    return rows


def trainer(bench: Bench) -> list[Row]:
    """A short epoch as `src/train.py` runs it, with its module, callbacks and a csv logger, beside a bare loop.

    The trainer's time is the one it reports: from its first step to the end of the last, so without the
    checkpoints at the epoch's end.
    """
    from hornn.experiment import build_trainer, csv_logger, quiet_libraries

    quiet_libraries()
    plan, meter = bench.plan, bench.meter
    sizes = plan.sizes
    ids = draw_text(sizes.vocab_size, plan.updates * sizes.batch_size * sizes.seq_len).numpy()
    variant = Variant("hornn_fofe")
    managed = build(variant, sizes)
    conf = OmegaConf.create({"checkpoint_every": 0, "trainer": {**OmegaConf.load(TRAINER), "max_epochs": 1}})

    def stream(chunks: int) -> ChunkStream:
        tokens = ids[: chunks * sizes.batch_size * sizes.seq_len]
        return ChunkStream(tokens, 0, sizes.batch_size, sizes.seq_len)

    def fit() -> float:
        sgd = partial(MomentumSGD, **UPDATE, clip=CLIP)
        module = TruncatedBptt(managed, sgd, Constant(), seq_len=sizes.seq_len)
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
            runner = build_trainer(conf, Path(folder))
            runner.logger = csv_logger(Path(folder), "bench", False)
            runner.fit(module, Blocks(stream(plan.updates), 1), stream(1))
        return 1e3 * module.records[0]["seconds"] / plan.updates

    def measure(bare: LanguageModel) -> Row:
        def loop() -> float:
            optimizer, state = our_optimizer(bare), bare.initial_state(sizes.batch_size)
            started = meter.clock()
            for chunk in stream(plan.updates):
                state = train_on(bare, optimizer, chunk.inputs, chunk.targets, state)
            return 1e3 * (meter.clock() - started) / plan.updates

        fit()
        loop()
        return meter.compare(fit, loop, plan.few_rounds)

    return [row_of("training step", variant, "bare loop", sizes, measure)]


def roofline(bench: Bench) -> list[Row]:
    """Each training step that was measured beside the time of its matrix products at the machine's peak.

    The peak is the best of some products of large square matrices; cells count at that of fp32, the output
    layer at that of its own precision.
    """
    n, rows = bench.plan.product, []
    peaks: dict[str, float] = {}
    for dtype in dict.fromkeys(("fp32", resolve_precision("auto", CPU))):
        matrix = torch.randn(n, n, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])
        sample = bench.meter.sampler(partial(torch.mm, matrix, matrix))
        ms = min(sample() for _ in range(bench.plan.rounds))
        peaks[dtype] = 2e-6 * n**3 / ms
        names = {"work": f"{n:,} x {n:,} product", "ours": "torch.mm", "precision": dtype, "dtype": dtype}
        rows.append({**names, "gflop": 2e-9 * n**3, "ms": ms, "speed": peaks[dtype]})
    for done in bench.rows:
        if done["section"] != "step" or "missing" in done or done["other"] in NAIVE.values():
            continue
        parts, ms = done["gflop"], done["ours_ms"]
        bound = 1e3 * (parts["cells"] / peaks["fp32"] + parts["head"] / peaks[done["dtype"]])
        other = {"gflop", "ours_ms", "other", "other_ms", "ratio", "spread", "section"}
        names = {key: value for key, value in done.items() if key not in other}
        total = sum(parts.values())
        times = {"ms": ms, "speed": 1e3 * total / ms, "bound_ms": bound, "reached": bound / ms}
        rows.append({**names, "gflop": total, **times})
    return rows


class Section(NamedTuple):
    """A table: what measures its rows, its heading, a line on what it shows, its columns as formats of a row."""

    measure: Callable[[Bench], list[Row]]
    title: str
    note: str
    columns: dict[str, str]


OURS = {"work": "{work}", "ours": "`{ours}`", "backend": "{scan}", "output layer": "{layer}"}
TIMES = {
    **OURS,
    "ms": "{ours_ms:.1f}",
    "other": "{other}",
    "other, ms": "{other_ms:.1f}",
    "ratio": "{ratio:.2f}",
    "spread": "{spread[0]:.2f}-{spread[1]:.2f}",
    "rounds dropped": "{drops}",
}
EPOCHS = TIMES | {
    "s per epoch": "{epoch_seconds:.0f}",
    "published, s": "{published_seconds}",
    "published ratio": "{published_ratio:.2f}",
}
SPEEDS = TIMES | {"tokens/s": "{ours_speed:,.0f}", "other, tokens/s": "{other_speed:,.0f}"}
MEGABYTES = {
    **OURS,
    "MB": "{ours_mb:.0f} ({ours_range[0]:.0f}-{ours_range[1]:.0f})",
    "other": "{other}",
    "other, MB": "{other_mb:.0f} ({other_range[0]:.0f}-{other_range[1]:.0f})",
    "ratio": "{ratio:.2f}",
}
BOUNDS = {
    **OURS,
    "GFLOP": "{gflop:.1f}",
    "ms": "{ms:.1f}",
    "GFLOP/s": "{speed:.0f}",
    "bound, ms": "{bound_ms:.1f}",
    "reached": "{reached:.0%}",
    "rounds dropped": "{drops}",
}
SERIES = "A step of third-order FOFE beside nn.RNN's, at other sizes than the table above in one respect."
SECTIONS = {
    "step": Section(
        step, "Training step", "Forward pass, backward pass and update, beside torch's own in fp32.", TIMES
    ),
    "thesis": Section(
        thesis,
        "Seconds per epoch",
        f"{EPOCH:,} steps, beside our rnn, whose own row shows the noise. Published: Soltani's thesis, table 6.3 "
        "(verified), on one TITAN X.",
        EPOCHS,
    ),
    "order": Section(
        order, "Order", "A training step beside that of order 1, whose own row shows the noise.", TIMES
    ),
    "hidden": Section(
        partial(vary, "hidden_size", "H = E", "hidden_sizes"), "Width of the state", SERIES, TIMES
    ),
    "vocabulary": Section(partial(vary, "vocab_size", "V", "vocab_sizes"), "Vocabulary", SERIES, TIMES),
    "length": Section(partial(vary, "seq_len", "T", "seq_lens"), "Tokens per chunk", SERIES, TIMES),
    "batch": Section(partial(vary, "batch_size", "B", "batch_sizes"), "Columns of the stream", SERIES, TIMES),
    "evaluation": Section(
        evaluation, "Evaluation", "Exact scores of a text with carried state, in fp32.", SPEEDS
    ),
    "memory": Section(
        memory,
        "Memory",
        "Five steps: the peak over that after the imports, median and range of some fresh processes.",
        MEGABYTES,
    ),
    "head": Section(
        head, "Two-level softmax", "Forward and backward pass of the output layer alone, in fp32.", TIMES
    ),
    "trainer": Section(
        trainer, "Trainer", "A training step inside of the trainer beside the same in a bare loop.", TIMES
    ),
    "roofline": Section(
        roofline,
        "Distance from the machine's peak",
        "The bound is the time of the step's matrix products at the measured peak.",
        BOUNDS,
    ),
}
NEEDS = {"roofline": "step"}
CONTENTS = {"date": str, "machine": dict, "sizes": dict, "rounds": dict, "filtered": bool, "rows": list}


# -- what comes out ------------------------------------------------------------------------------------------


def run(
    out: Path, against: Path | None = None, only: Collection[str] = tuple(SECTIONS), plan: Plan = FULL
) -> None:
    """Measure the sections of `only`, print each table, write `<out>.json` and `<out>.md` after each.

    Then print how the rows compare with those of the file `against`. Raises ValueError or OSError before any
    measurement for what cannot be read, chosen or written.
    """
    names = choose_sections(only)
    then = read(against) if against else None
    if then and then["sizes"] != plan.sizes._asdict():
        raise ValueError(f"{against} was measured at {Sizes(**then['sizes'])}, this would be at {plan.sizes}")
    out.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(out.parent, os.W_OK):
        raise OSError(f"{out.parent} is not writable: give --out FOLDER/NAME")
    set_up_process()  # as training does; torch's own layers, in this process, profit too
    torch.manual_seed(0)
    bench = Bench(plan, Meter(plan.seconds), [])
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows = [{"section": name, **row} for row in SECTIONS[name].measure(bench)]
        bench.rows.extend(rows)
        results = report(bench)
        write_atomically(out.with_name(f"{out.name}.json"), json.dumps(results, indent=1) + "\n")
        write_atomically(out.with_name(f"{out.name}.md"), render(results) + "\n")
        print(f"{render_section(name, rows)}\n", flush=True)
    if then:
        print(render_changes(bench.rows, then))


def choose_plan(quick: bool, rounds: int | None) -> Plan:
    """The whole plan or its small model; `rounds` bounds those of a series too. ValueError for rounds < 1."""
    plan = QUICK if quick else FULL
    if rounds is None:
        return plan
    require_positive(rounds=rounds)
    return plan._replace(rounds=rounds, few_rounds=min(rounds, plan.few_rounds))


def choose_sections(only: Collection[str]) -> list[str]:
    """The sections in their order, with those that a chosen one needs. ValueError for an unknown name."""
    for name in only:
        if name not in SECTIONS:
            raise ValueError(f"there is no section {name!r}: --only takes {', '.join(SECTIONS)}")
    needed = {NEEDS[name] for name in only if name in NEEDS}
    return [name for name in SECTIONS if name in {*only, *needed}]


def report(bench: Bench) -> dict[str, Any]:
    """All that the JSON file holds."""
    from hornn.provenance import commit

    plan = bench.plan
    return {
        "schema_version": SCHEMA_VERSION,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **commit(),
        "machine": machine(),
        "sizes": plan.sizes._asdict(),
        "rounds": {"most": plan.rounds, "series": plan.few_rounds},
        "filtered": bench.meter.others() is not None,
        "rows": bench.rows,
    }


def machine() -> dict[str, Any]:
    """The processor, its extensions for matrices and vectors, the threads and what steers them, the versions."""
    cpuinfo = Path("/proc/cpuinfo")
    known: dict[str, str] = {}
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        key, _, value = line.partition(":")
        known.setdefault(key.strip(), value.strip())
    flags = (known.get("flags") or known.get("Features") or "").split()
    return {
        "processor": known.get("model name") or platform.processor() or platform.machine(),
        "flags": [flag for flag in flags if flag.startswith(("avx", "amx", "fma", "sve", "asimd", "bf16"))],
        "threads": torch.get_num_threads(),
        "environment": {
            key: value
            for key, value in sorted(os.environ.items())
            if key.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))
        },
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def read(path: Path) -> dict[str, Any]:
    """The results that `run` wrote. ValueError where the file is missing, damaged or of another schema."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        version = results["schema_version"]
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}): give a JSON file of this benchmark"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged or no file of this benchmark ({error!r})") from error
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"{path} has schema version {version}, this program reads {SCHEMA_VERSION}: measure again"
        )
    wrong = [key for key, kind in CONTENTS.items() if not isinstance(results.get(key), kind)]
    if not wrong and set(results["sizes"]) != set(Sizes._fields):
        wrong = ["sizes"]
    if not wrong and not all(
        isinstance(row, dict) and row.get("section") in SECTIONS for row in results["rows"]
    ):
        wrong = ["rows"]
    if wrong:
        raise ValueError(f"{path} is damaged: {', '.join(wrong)} cannot be understood; measure again")
    assert isinstance(results, dict)
    return results


def render(results: Mapping[str, Any], only: Collection[str] = tuple(SECTIONS)) -> str:
    """The tables of the sections in `only` as Markdown."""
    measured = {row["section"] for row in results["rows"]}
    names = [name for name in SECTIONS if name in measured and name in only]
    tables = [
        render_section(name, [row for row in results["rows"] if row["section"] == name]) for name in names
    ]
    return "\n\n".join([describe(results), *tables])


def describe(results: Mapping[str, Any]) -> str:
    """Where, when and how it was measured."""
    on, rounds = results["machine"], results["rounds"]
    steered = "".join(f", {key}={value}" for key, value in on["environment"].items())
    noise = (
        f"rounds in which other processes took more than {QUIET:.0%} of a core are dropped"
        if results["filtered"]
        else "this system does not tell what other processes take, so no round is dropped"
    )
    return (
        f"{on['processor']}, {on['threads']} threads{steered}, {on['memory_gb']} GB, {on['system']}, "
        f"torch {on['torch']}, Python {on['python']}; {origin(results)}. "
        f"{Sizes(**results['sizes'])} where nothing else is said. Medians of {rounds['most']} rounds, of "
        f"{rounds['series']} in series, each with a sample of both sides; {noise}. Ratio: ours / other; spread: "
        "its least and largest."
    )


def origin(results: Mapping[str, Any]) -> str:
    """The day and the state of the code."""
    state = " with changes" if results.get("dirty") else ""
    return f"{results['date'][:10]}, commit {(results.get('commit') or 'unknown')[:10]}{state}"


def render_section(name: str, rows: list[Row]) -> str:
    """One table, and below it what could not be measured and why."""
    section = SECTIONS[name]
    lines = [f"**{section.title}.** {section.note}", "", *header(section.columns)]
    lines += [cells(section.columns.values(), row) for row in rows if "missing" not in row]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if "missing" in row:
            which = reasons.setdefault(row["missing"], [])
            which += [name] if (name := f"`{row['ours']}` {row['backend']}") not in which else []
    lines += [
        line for why, which in reasons.items() for line in ("", f"Not measured: {', '.join(which)}: {why}")
    ]
    return "\n".join(lines)


def header(columns: Collection[str]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def cells(formats: Collection[str], row: Row) -> str:
    """A line of a table; a cell whose values the row lacks is empty."""
    layer = f"{row['dtype']}, native" if row.get("native") else row.get("dtype")
    row = {**row, "layer": layer, "drops": describe_drops(row)}
    texts = []
    for format_ in formats:
        names = [name.partition("[")[0] for _, name, _, _ in string.Formatter().parse(format_) if name]
        absent = any(row.get(name) is None for name in names)
        texts.append("" if absent else format_.format_map(row))
    return f"| {' | '.join(texts)} |"


def describe_drops(row: Row) -> str | None:
    """How many rounds were dropped; a row that never got quiet keeps them all, and is marked."""
    if row.get("quiet") is None:
        return "no filter" if "rounds" in row else None
    return (
        str(row["dropped"]) if row["quiet"] else f"**never quiet**: {row['dropped']} of {row['rounds']} loud"
    )


def identity(row: Row) -> tuple[Any, ...]:
    """What makes two rows the same measurement."""
    return tuple(row.get(key) for key in ("section", "work", "ours", "backend", "precision", "other"))


def compare_rows(now: list[Row], then: list[Row]) -> list[Row]:
    """For each row that both have with a time or a memory of ours: now / then, of it and of the ratio to the other."""
    before = {identity(row): row for row in then}
    changes = []
    for row in now:
        old = before.get(identity(row), {})
        for unit, key in (("ms", "ours_ms"), ("MB", "ours_mb")):
            if key in row and key in old:
                noise = "never quiet" if False in (row.get("quiet"), old.get("quiet")) else None
                change = {"now": row[key], "then": old[key], "unit": unit, "change": row[key] / old[key]}
                change["noise"] = noise
                changes.append({**row, **change, "ratio_change": row["ratio"] / old["ratio"]})
    return changes


def render_changes(now: list[Row], then: Mapping[str, Any]) -> str:
    """The comparison as a table. The last column does not depend on how fast the machine is."""
    changes = compare_rows(now, then["rows"])
    columns = {
        "section": "{section}",
        "work": "{work}",
        "ours": "`{ours}`",
        "backend": "{backend}",
        "asked for": "{precision}",
        "other": "{other}",
        "now": "{now:.1f} {unit}",
        "then": "{then:.1f} {unit}",
        "now / then": "{change:.2f}",
        "ratio now / then": "{ratio_change:.2f}",
        "noise": "{noise}",
    }
    places = [f"{on.get('processor')}, {on.get('threads')} threads" for on in (machine(), then["machine"])]
    where = "" if places[0] == places[1] else f" Now on {places[0]}; then on {places[1]}."
    title = f"**Against {origin(then)}:** {len(changes)} rows of both.{where}"
    return "\n".join([title, "", *header(columns), *(cells(columns.values(), row) for row in changes)])


def renew(path: Path, source: Path) -> None:
    """Write the foremost tables of a JSON file between the marks in a Markdown file. ValueError where none are."""
    write_between(path, "bench", render(read(source), FOREMOST))
