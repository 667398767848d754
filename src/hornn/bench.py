"""The benchmark: our code beside what a user would otherwise take, in turn in one process, as ratios."""

import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.heads import Head, SoftmaxHead, TwoLevelSoftmaxHead, resolve_precision
from hornn.network import LanguageModel
from hornn.optim import MomentumSGD
from hornn.result import write_atomically

V, H, B, T = 10_000, 400, 20, 30  # Penn Treebank in the HORNN paper
MODELS = Path(__file__).parents[2] / "conf" / "model"
ROUNDS = 15


class Pair(NamedTuple):
    """Two ways to do the same work; each callable does it once."""

    work: str
    ours: tuple[str, Callable[[], object]]
    theirs: tuple[str, Callable[[], object]]


class TorchModel(nn.Module):
    """What a user would write: nn.Embedding, a torch.nn recurrent layer, nn.Linear, cross entropy."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, H)
        self.layer = getattr(nn, layer)(H, H, bias=False)
        self.output = nn.Linear(H, V, bias=False)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        y, _ = self.layer(self.embedding(inputs))
        return F.cross_entropy(self.output(y).flatten(0, 1), targets.flatten())


def our_step(model: str) -> Callable[[], object]:
    """One training step of a cell of conf/model at the sizes above."""
    conf = OmegaConf.merge(OmegaConf.load(MODELS / f"{model}.yaml"), {"hidden_size": H})
    network = LanguageModel(zipf_counts(), instantiate(conf))
    network.head.precision = resolve_precision("auto", torch.device("cpu"))
    optimizer = MomentumSGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-5, clip=5.0)
    inputs, targets = batch()

    def step() -> None:
        optimizer.zero_grad()
        features, _ = network(inputs, network.initial_state(B))
        (network.head.loss(features, targets) / targets.numel()).backward()
        optimizer.step()

    return step


def torch_step(layer: str) -> Callable[[], object]:
    """The same with torch's own layer and SGD."""
    model = TorchModel(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-5)
    inputs, targets = batch()

    def step() -> None:
        optimizer.zero_grad()
        model(inputs, targets).backward()
        nn.utils.clip_grad_value_(model.parameters(), 5.0)
        optimizer.step()

    return step


def head_step(head: Callable[..., Head], hidden_size: int) -> Callable[[], object]:
    """Forward and backward pass of an output layer, strict fp32."""
    layer = head(input_size=hidden_size, counts=zipf_counts())
    features = torch.randn(T, B, hidden_size, requires_grad=True)
    _, targets = batch()

    def step() -> None:
        layer.zero_grad()
        layer.loss(features, targets).backward()

    return step


def zipf_counts() -> list[int]:
    """Word counts as in a natural text: the r-th word occurs in proportion to 1/r."""
    return [1_000_000 // rank for rank in range(1, V + 1)]


def batch() -> tuple[Tensor, Tensor]:
    """Inputs and targets (T, B), drawn by those counts."""
    weights = torch.tensor(zipf_counts(), dtype=torch.float64)
    ids = torch.multinomial(weights, 2 * T * B, replacement=True).view(2, T, B)
    return ids[0], ids[1]


def pairs() -> list[Pair]:
    naive = [("rnn", "RNN"), ("hornn_fofe", "RNN"), ("hornn_gated", "LSTM"), ("lstm", "LSTM"), ("gru", "GRU")]
    steps = [
        Pair("training step", (model, our_step(model)), (f"nn.{layer}", torch_step(layer)))
        for model, layer in naive
    ]
    heads = [
        Pair(
            f"output layer, H = {width}",
            ("two-level softmax", head_step(TwoLevelSoftmaxHead, width)),
            ("full softmax", head_step(SoftmaxHead, width)),
        )
        for width in (100, H)
    ]
    return [*steps, *heads]


def measure(pair: Pair, rounds: int = ROUNDS) -> dict[str, Any]:
    """Medians in ms over `rounds`, the two in turn, and the median of the ratios round by round."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for round_ in range(rounds + 2):
        for side, (_, work) in (("ours", pair.ours), ("theirs", pair.theirs)):
            started = time.perf_counter()
            work()
            if round_ >= 2:  # the first two warm up
                times[side].append(1e3 * (time.perf_counter() - started))
    return {
        "work": pair.work,
        "ours": pair.ours[0],
        "theirs": pair.theirs[0],
        "ours_ms": statistics.median(times["ours"]),
        "theirs_ms": statistics.median(times["theirs"]),
        "ratio": statistics.median(a / b for a, b in zip(times["ours"], times["theirs"], strict=True)),
        "spread": [min(times["ours"]), max(times["ours"]), min(times["theirs"]), max(times["theirs"])],
    }


def run(out: Path) -> str:
    """Measure all pairs, write `<out>.json` and `<out>.md`, return the table."""
    torch.manual_seed(0)
    rows = [measure(pair) for pair in pairs()]
    machine = {
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "output_layer": resolve_precision("auto", torch.device("cpu")),
        "sizes": {"V": V, "H": H, "B": B, "T": T},
    }
    table = [
        "| work | ours | other | ours, ms | other, ms | ratio |",
        "|---|---|---|---|---|---|",
        *(
            "| {work} | {ours} | {theirs} | {ours_ms:.1f} | {theirs_ms:.1f} | {ratio:.2f} |".format(**row)
            for row in rows
        ),
    ]
    text = "\n".join(table) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(
        out.with_suffix(".json"), json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n"
    )
    write_atomically(out.with_suffix(".md"), text)
    return text
