"""Other tasks than a stream of words, as sections: characters, speech, music beside torch's packed ones, lines."""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from hornn.bench.meter import Row
from hornn.bench.sections import Bench
from hornn.bench.work import (
    LAYERS,
    Sizes,
    TorchModel,
    Variant,
    Work,
    build,
    draw_text,
    layer_and_output,
    our_optimizer,
    our_step,
    step_by_torch,
    train_on,
)
from hornn.data.base import IGNORE
from hornn.data.music import KEYS
from hornn.heads.bernoulli import BernoulliHead
from hornn.network import SequenceModel
from hornn.use.scoring import score_lines

# Our models, and the layer that a user would otherwise take.
BESIDE = {
    "rnn": "nn.RNN",
    "hornn_fofe": "nn.RNN",
    "dts_rnn": "nn.RNN",
    "dots_rnn": "nn.RNN",
    "lstm": "nn.LSTM",
    "gru": "nn.GRU",
    "lstmp": "nn.LSTM, projected",
    "srnn": "nn.RNN, 2 layers",
}

# Whose native loops have no counterpart in torch: a deep transition, and what is compared on speech.
OWN = (
    *("dts_rnn", "hornn_relu", "hornn_sigmoid", "hornnp_relu", "hornnp_sigmoid", "resrnn"),
    *("gru", "lstm", "lstmp"),
)

# On speech, too: what the acoustic poster compares, our cells with one another as well.
ON_SPEECH = (
    ("rnn", "nn.RNN"),
    ("hornn_relu", "nn.LSTM"),
    ("hornn_sigmoid", "nn.LSTM"),
    ("hornnp_relu", "nn.LSTM, projected"),
    ("hornnp_sigmoid", "nn.LSTM, projected"),
    ("lstm", "nn.LSTM"),
    ("lstmp", "nn.LSTM, projected"),
    ("hornn_relu", "lstm"),
    ("hornnp_relu", "lstmp"),
    ("resrnn", "hornn_sigmoid"),
)
COEFFICIENTS = 80  # of a frame of speech

START = {"init_std": 0.02}  # from which no ReLU diverges, however many steps are timed


def characters(bench: Bench) -> list[Row]:
    """Training steps at the sizes of the deep RNN paper's characters."""
    plan = bench.plan
    return [
        bench.compare_steps("training step", Variant(model), other, plan.characters, plan.rounds, **START)
        for model, other in BESIDE.items()
    ]


def loops(bench: Bench) -> list[Row]:
    """Training steps on classes of frames beside the same cell's own loop over `step`."""
    sizes = bench.plan.frames

    def measure(model: str, network: SequenceModel) -> Row:
        eager = build(Variant(model, backend="eager"), sizes, bench.device, **START)
        return bench.compare(our_step(network, sizes), our_step(eager, sizes), bench.plan.rounds)

    return [
        bench.row_of("training step", Variant(model), "own loop", sizes, partial(measure, model), **START)
        for model in OWN
    ]


def speech(bench: Bench) -> list[Row]:
    """Training steps on padded utterances, whose frames are classes."""
    sizes = bench.plan.speech
    inputs, targets = draw_speech(sizes, bench.device)
    given = {**START, "output_bias": True, "input_width": COEFFICIENTS}

    def ours(network: SequenceModel) -> Work:
        state = network.initial_state(sizes.batch_size)
        return partial(train_on, network, our_optimizer(network), inputs, targets, state)

    def measure(other: str, network: SequenceModel) -> Row:
        if other in LAYERS:
            theirs = padded_step(other, sizes, inputs, targets)
        else:
            theirs = ours(build(Variant(other), sizes, bench.device, **given))
        return bench.compare(ours(network), theirs, bench.plan.rounds)

    return [
        bench.row_of("training step", Variant(model), other, sizes, partial(measure, other), **given)
        for model, other in ON_SPEECH
    ]


def draw_speech(sizes: Sizes, device: torch.device) -> tuple[Tensor, Tensor]:
    """Frames (T, B, 80) of utterances of unequal length and their classes (T, B), padded."""
    ended = torch.arange(sizes.seq_len)[:, None] >= falling_lengths(sizes)
    inputs = torch.randn(*ended.shape, COEFFICIENTS).masked_fill(ended[..., None], 0)
    targets = torch.randint(sizes.vocab_size, ended.shape).masked_fill(ended, IGNORE)
    return inputs.to(device), targets.to(device)


def padded_step(layer: str, sizes: Sizes, inputs: Tensor, targets: Tensor) -> Work:
    """One training step of a layer of torch's on the same padded batch, with nn.Linear and torch's own SGD."""
    recurrent, output = layer_and_output(layer, COEFFICIENTS, sizes.hidden_size, sizes.vocab_size, bias=True)
    model = nn.ModuleDict({"layer": recurrent, "output": output}).to(inputs.device)

    def loss() -> Tensor:
        logits = model["output"](model["layer"](inputs)[0])
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)

    return step_by_torch(model, loss)


def falling_lengths(sizes: Sizes) -> Tensor:
    """The lengths of the sequences of a batch: from the length of a chunk down to half of it."""
    return torch.linspace(sizes.seq_len, max(1, sizes.seq_len // 2), sizes.batch_size).long()


def sentences(bench: Bench) -> list[Row]:
    """Scores of lines, each from a fresh state, beside padded batches of lines of similar length in torch."""
    sizes = bench.plan.sentences
    lengths = np.random.default_rng(0).integers(5, 40, size=max(4, bench.plan.scored_tokens // 22))
    ids = draw_text(sizes.vocab_size, int(lengths.sum())).numpy()
    reference = TorchModel("nn.RNN", sizes).to(bench.device)

    def measure(columns: int, network: SequenceModel) -> Row:
        ours = partial(score_lines, network, ids, lengths, 0, columns, 100)
        theirs = partial(score_lines_with_torch, reference, ids, lengths, columns)
        times = bench.compare(ours, theirs, bench.plan.few_rounds)
        speeds = {f"{side}_speed": 1e3 * len(ids) / times[f"{side}_ms"] for side in ("ours", "other")}
        return {**times, **speeds, "dtype": "fp32"}

    return [
        bench.row_of(
            f"{columns} lines at a time",
            Variant("hornn_fofe", precision="fp32"),
            "nn.RNN",
            sizes,
            partial(measure, columns),
        )
        for columns in bench.plan.sentence_columns
    ]


@torch.inference_mode()
def score_lines_with_torch(model: TorchModel, ids: np.ndarray, lengths: np.ndarray, columns: int) -> None:
    lines = sorted(torch.from_numpy(ids).split(lengths.tolist()), key=len)
    device = model.output.weight.device
    for first in range(0, len(lines), columns):
        words = pad_sequence(lines[first : first + columns], padding_value=IGNORE).to(device)
        inputs = torch.cat([torch.zeros_like(words[:1]), words[:-1].clamp(min=0)])
        F.cross_entropy(model(inputs)[0], words.flatten(), ignore_index=IGNORE, reduction="none").tolist()


def music(bench: Bench) -> list[Row]:
    """Training steps on a batch of sequences of unequal length, padded here, packed there."""
    sizes = bench.plan.music
    lengths = falling_lengths(sizes)
    inputs, targets = draw_music(lengths, bench.device)

    def measure(other: str, network: SequenceModel) -> Row:
        state = network.initial_state(sizes.batch_size)
        ours = partial(train_on, network, our_optimizer(network), inputs, targets, state)
        theirs = packed_step(other, sizes.hidden_size, inputs, targets, lengths)
        return bench.compare(ours, theirs, bench.plan.rounds)

    return [
        bench.row_of(
            "training step",
            Variant(model),
            other,
            sizes,
            partial(measure, other),
            head=BernoulliHead,
            output_bias=True,
            input_width=KEYS,
        )
        for model, other in BESIDE.items()
    ]


def draw_music(lengths: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Frames (T, B, 88) of which each key sounds at random, and the frames after them, padded."""
    frames = (torch.rand(int(lengths.max()) + 1, len(lengths), KEYS) < 0.05).float()
    ended = torch.arange(int(lengths.max()))[:, None] >= lengths
    inputs = frames[:-1].masked_fill(ended[..., None], 0)
    targets = frames[1:].masked_fill(ended[..., None], IGNORE)
    return inputs.to(device), targets.to(device)


def packed_step(layer: str, width: int, inputs: Tensor, targets: Tensor, lengths: Tensor) -> Work:
    """One training step of a layer of torch's on packed sequences, with nn.Linear and torch's own SGD."""
    recurrent, output = layer_and_output(layer, KEYS, width, KEYS, bias=True)
    model = nn.ModuleDict({"layer": recurrent, "output": output}).to(inputs.device)
    packed = pack_padded_sequence(inputs, lengths)
    wanted = pack_padded_sequence(targets, lengths).data

    def loss() -> Tensor:
        y, _ = model["layer"](packed)
        total = F.binary_cross_entropy_with_logits(model["output"](y.data), wanted, reduction="sum")
        return total / len(wanted)

    return step_by_torch(model, loss)
