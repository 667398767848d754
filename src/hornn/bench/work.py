"""What is measured: training steps and output layers, ours and what a user would otherwise write."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.data.base import IGNORE
from hornn.data.streams import ChunkStream
from hornn.heads.base import Head, resolve_precision
from hornn.kernels import library
from hornn.kernels.reduced import DTYPES, multiplies_in, reduced_product
from hornn.network import NetworkState, SequenceModel, detach_all
from hornn.optim.descent import MomentumSGD
from hornn.optim.spared import spare_work
from hornn.places import CONF
from hornn.recorded_updates import Outcome, record_updates

MODELS = CONF / "model"
CPU = torch.device("cpu")
UPDATE: dict[str, Any] = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-5}
CLIP = 5.0
# torch says so of each projected layer, and computes it in another way.
warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")

Work = Callable[[], object]  # does the work once


class Sizes(NamedTuple):
    """The sizes of a network and its chunk; by default as on Penn Treebank in the HORNN paper."""

    vocab_size: int = 10_000
    hidden_size: int = 400
    batch_size: int = 20
    seq_len: int = 30

    def __str__(self) -> str:
        return f"V = {self.vocab_size:,}, H = {self.hidden_size}, {self.batch_size} x {self.seq_len} tokens"


class Variant(NamedTuple):
    """One of our models (conf/model) as it is asked for."""

    model: str
    order: int | None = None
    backend: str = "auto"
    precision: str = "auto"


def build(variant: Variant, sizes: Sizes, device: torch.device = CPU, **given: Any) -> SequenceModel:
    """The network, ready to run, with these further arguments.

    ValueError where its backend cannot run that cell, or not on this device.
    """
    arguments = {"hidden_size": sizes.hidden_size, **({"order": variant.order} if variant.order else {})}
    cell = instantiate(OmegaConf.merge(OmegaConf.load(MODELS / f"{variant.model}.yaml"), arguments))
    counts = zipf_counts(sizes.vocab_size)
    network = SequenceModel(counts, cell, precision=variant.precision, backend=variant.backend, **given)
    network.to(device).prepare(device)
    return network


def our_step(network: SequenceModel, sizes: Sizes) -> Work:
    """One training step: forward and backward pass, update."""
    optimizer = our_optimizer(network)
    inputs, targets = batch(sizes, network.device)
    state, scale = network.initial_state(sizes.batch_size), 1 / targets.numel()
    recorded = record_updates(network, optimizer, partial(differentiate, network), ())

    def step() -> None:
        if recorded is not None:
            if recorded.log.is_full:
                recorded.log.take()
            if recorded.replay([inputs], state, targets, scale, targets.numel(), optimizer.step) is not None:
                return
        train_on(network, optimizer, inputs, targets, state)

    return step


def differentiate(
    network: SequenceModel, chunks: Sequence[Tensor], state: NetworkState, targets: Tensor, scale: float
) -> Outcome:
    """What `hornn.module.TruncatedBptt.differentiate` does of one chunk, without noise."""
    features, state = network(chunks[0], state)
    loss = network.head.loss(features, targets, scale)
    loss.backward()
    return Outcome(features.detach(), detach_all(state), loss.detach().double() / scale)


def step_of(variant: Variant, sizes: Sizes, device: torch.device) -> Work:
    """The training step of a variant, from its name: what a fresh process can be asked for."""
    return our_step(build(variant, sizes, device), sizes)


def our_optimizer(network: SequenceModel) -> MomentumSGD:
    optimizer = MomentumSGD(network.parameters(), **UPDATE, clip=CLIP)
    if network.device == CPU:
        spare_work(network, optimizer)
    return optimizer


def train_on(
    network: SequenceModel, optimizer: MomentumSGD, inputs: Tensor, targets: Tensor, state: Any
) -> Any:
    """The state after one step on a chunk, cut off from its history."""
    outcome = differentiate(network, [inputs], state, targets, 1 / targets.numel())
    optimizer.step()
    optimizer.zero_grad()
    return outcome.state


class LstmLoop(nn.Module):
    """An LSTM as a loop over nn.LSTMCell."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs, width, bias=False)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        outputs = []
        for x_t in x:
            state = self.cell(x_t, state)
            outputs.append(state[0])
        return torch.stack(outputs), state


class FofeLoop(nn.Module):
    """h_t = sigmoid(W_in x_t + sum_n 0.6^n W_n h_{t-n}), n = 1, 2, 3, one nn.Linear for each matrix."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.W_in = nn.Linear(inputs, width, bias=False)
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


# Name -> the layer of so many inputs and units; its output has half of the units where it is projected.
LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "nn.RNN": partial(nn.RNN, bias=False),
    "nn.LSTM": partial(nn.LSTM, bias=False),
    "nn.GRU": partial(nn.GRU, bias=False),
    "nn.RNN, 2 layers": partial(nn.RNN, num_layers=2, bias=False),
    "nn.LSTM, projected": lambda inputs, width: nn.LSTM(
        inputs, width, bias=False, proj_size=(width + 1) // 2
    ),
    "LSTMCell loop": LstmLoop,
    "FOFE loop": FofeLoop,
}


def layer_and_output(
    name: str, inputs: int, width: int, classes: int, bias: bool
) -> tuple[nn.Module, nn.Linear]:
    """A layer of `LAYERS`, and a linear layer above it."""
    layer = LAYERS[name](inputs, width)
    return layer, nn.Linear(getattr(layer, "proj_size", 0) or width, classes, bias=bias)


class TorchModel(nn.Module):
    """What a user would write: nn.Embedding, a recurrent layer, nn.Linear, cross entropy; all in fp32."""

    def __init__(self, layer: str, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        width = sizes.hidden_size
        self.layer, self.output = layer_and_output(layer, width, width, sizes.vocab_size, bias=False)

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Logits (T B, V) and the state after them."""
        y, state = self.layer(self.embedding(inputs), state)
        return self.output(y).flatten(0, 1), state


def torch_step(layer: str, sizes: Sizes, device: torch.device) -> Work:
    """One training step of that model."""
    model = TorchModel(layer, sizes).to(device)
    inputs, targets = batch(sizes, device)
    return step_by_torch(model, lambda: F.cross_entropy(model(inputs)[0], targets.flatten()))


def step_by_torch(model: nn.Module, loss: Callable[[], Tensor]) -> Work:
    """One training step of a model under torch's own SGD."""
    optimizer = torch.optim.SGD(model.parameters(), **UPDATE)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        nn.utils.clip_grad_value_(model.parameters(), CLIP)
        optimizer.step()

    return step


@torch.inference_mode()
def score_with_torch(model: TorchModel, stream: ChunkStream) -> Tensor:
    """Negative log-likelihood of every token of a stream, with carried state."""
    state, scores, device = None, [], model.output.weight.device
    for chunk in stream:
        logits, state = model(chunk.inputs.to(device), state)
        words = chunk.targets.to(device).flatten()
        scores.append(F.cross_entropy(logits, words, ignore_index=IGNORE, reduction="none"))
    return torch.cat(scores)


def head_step(head: Callable[..., Head], sizes: Sizes, device: torch.device, precision: str = "fp32") -> Work:
    """Forward and backward pass of one of our output layers alone; with precision `auto` as in training."""
    layer = head(input_size=sizes.hidden_size, counts=zipf_counts(sizes.vocab_size)).to(device)
    layer.precision = resolve_precision(precision, device)
    layer.native = runs_natively(precision, device)
    shape = sizes.seq_len, sizes.batch_size, sizes.hidden_size
    features = torch.randn(shape, device=device, requires_grad=True)
    targets = batch(sizes, device)[1]

    def step() -> None:
        layer.zero_grad()
        layer.loss(features, targets).backward()

    return step


def products(x: Tensor, precision: str) -> Iterator[tuple[str, Work]]:
    """Each way to multiply x (n, n) by itself in a precision, and its name."""
    dtype = DTYPES.get(precision, torch.float32)
    if multiplies_in(dtype):
        yield "reduced_product", partial(reduced_product, x, x, torch.empty_like(x), dtype)
    if dtype != torch.float16:
        yield "torch.mm", partial(torch.mm, x.to(dtype), x.to(dtype))


def runs_natively(precision: str, device: torch.device) -> bool:
    """Whether an output layer of that precision alone uses the native kernels."""
    return precision == "auto" and device == CPU and library.why_not() is None


def linear_step(sizes: Sizes, device: torch.device) -> Work:
    """Forward and backward pass of an output layer as a user writes it: nn.Linear and cross entropy."""
    layer = nn.Linear(sizes.hidden_size, sizes.vocab_size, bias=False, device=device)
    shape = sizes.seq_len * sizes.batch_size, sizes.hidden_size
    features = torch.randn(shape, device=device, requires_grad=True)
    targets = batch(sizes, device)[1].flatten()

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


def batch(sizes: Sizes, device: torch.device) -> tuple[Tensor, Tensor]:
    """Inputs and targets (T, B)."""
    count = sizes.seq_len * sizes.batch_size
    ids = draw_text(sizes.vocab_size, 2 * count).view(2, sizes.seq_len, sizes.batch_size)
    return ids[0].to(device), ids[1].to(device)
