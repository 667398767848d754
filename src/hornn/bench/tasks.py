"""Other tasks than words, as sections: characters, and sequences of music beside torch's packed ones."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from hornn.bench.meter import Row
from hornn.bench.sections import Bench
from hornn.bench.work import CLIP, CPU, UPDATE, Variant, Work, our_optimizer, train_on
from hornn.data.base import IGNORE
from hornn.data.music import KEYS
from hornn.heads.bernoulli import BernoulliHead
from hornn.network import SequenceModel

# Our models, and the layer that a user would otherwise take.
BESIDE = {
    "rnn": "nn.RNN",
    "hornn_fofe": "nn.RNN",
    "dts_rnn": "nn.RNN",
    "lstm": "nn.LSTM",
    "gru": "nn.GRU",
}


def characters(bench: Bench) -> list[Row]:
    """Training steps at the sizes of the deep RNN paper's characters."""
    return [
        bench.compare_steps("training step", Variant(model), other, bench.plan.characters, bench.plan.rounds)
        for model, other in BESIDE.items()
    ]


def music(bench: Bench) -> list[Row]:
    """Training steps on a batch of sequences of unequal length, padded here, packed there."""
    sizes = bench.plan.music
    lengths = torch.linspace(sizes.seq_len, max(1, sizes.seq_len // 2), sizes.batch_size).long()
    inputs, targets = draw_music(lengths, bench.device)

    def measure(other: str, network: SequenceModel) -> Row:
        state = network.initial_state(sizes.batch_size)
        ours = partial(train_on, network, our_optimizer(network), inputs, targets, state)
        theirs = packed_step(other, sizes.hidden_size, inputs, targets, lengths, bench.device)
        return bench.meter.compare(bench.meter.sampler(ours), bench.meter.sampler(theirs), bench.plan.rounds)

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


def draw_music(lengths: Tensor, device: torch.device = CPU) -> tuple[Tensor, Tensor]:
    """Frames (T, B, 88) of which each key sounds at random, and the frames after them, padded."""
    frames = (torch.rand(int(lengths.max()) + 1, len(lengths), KEYS) < 0.05).float()
    ended = torch.arange(int(lengths.max()))[:, None] >= lengths
    inputs = frames[:-1].masked_fill(ended[..., None], 0)
    targets = frames[1:].masked_fill(ended[..., None], IGNORE)
    return inputs.to(device), targets.to(device)


def packed_step(
    layer: str, width: int, inputs: Tensor, targets: Tensor, lengths: Tensor, device: torch.device
) -> Work:
    """One training step of a layer of torch's on packed sequences, with nn.Linear and torch's own SGD."""
    recurrent = {"nn.RNN": nn.RNN, "nn.LSTM": nn.LSTM, "nn.GRU": nn.GRU}[layer]
    model = nn.ModuleDict({"layer": recurrent(KEYS, width, bias=False), "output": nn.Linear(width, KEYS)})
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), **UPDATE)
    packed = pack_padded_sequence(inputs, lengths)
    wanted = pack_padded_sequence(targets, lengths).data

    def step() -> None:
        optimizer.zero_grad()
        y, _ = model["layer"](packed)
        loss = F.binary_cross_entropy_with_logits(model["output"](y.data), wanted, reduction="sum")
        (loss / len(wanted)).backward()
        nn.utils.clip_grad_value_(model.parameters(), CLIP)
        optimizer.step()

    return step
