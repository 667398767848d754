"""How a network reads text to score it, what a score is, and how text is drawn from what a model expects."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hornn.checks import is_number, require_positive, require_range, require_temperature
from hornn.data.base import IGNORE
from hornn.data.streams import ChunkStream
from hornn.metrics import perplexity
from hornn.network import SequenceModel, detach_all

# Where nobody says how much is read at a time:
AT_ONCE = 1200  # tokens of all columns; what is prepared for a chunk costs 8 % at 300 (measured)
CHUNK = 100  # tokens that are learned from, and steps of a sequence


@torch.inference_mode()
def score_stream(
    network: SequenceModel, ids: np.ndarray, start_id: int, batch_size: int, seq_len: int
) -> np.ndarray:
    """Negative log-likelihood in nats of every token of a text, in the text's order, float64 (N,).

    The text is read as `batch_size` contiguous columns with carried state; 1 reads it exactly from left to
    right. Errors: as in `ChunkStream`.
    """
    device = network.device
    state = network.initial_state(batch_size)
    rows = []
    kept = []
    for chunk in ChunkStream(ids, start_id, batch_size, seq_len):
        features, state = network(chunk.inputs.to(device), state)
        rows.append(network.head.nll(features, chunk.targets.to(device)).double().cpu())
        kept.append(chunk.targets != IGNORE)
    return torch.cat(rows).T[torch.cat(kept).T].numpy()


def score_dynamically(
    network: SequenceModel, ids: np.ndarray, start_id: int, seq_len: int, lr: float
) -> np.ndarray:
    """Like `score_stream` with one column, but the weights learn from every chunk after it was scored.

    After each `seq_len` tokens, w <- w - lr dL/dw with L the chunk's mean negative log-likelihood; the state is
    carried, gradients stop at the chunk's start. The network keeps the weights that it ends with.

    Source: dynamic evaluation, Mikolov et al. 2010; the papers' "RNN 123" and "LSTM 117" used it. Raises
    ValueError for an lr <= 0.
    """
    if not isinstance(lr, float | int) or not lr > 0:
        raise ValueError(f"dynamic_lr must be > 0, got {lr!r}")
    device = network.device
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    network.spare_rows()  # then its gradient has the rows of the chunk's words alone
    state = network.initial_state(1)
    scores = []
    for chunk in ChunkStream(ids, start_id, 1, seq_len):
        features, after = network(chunk.inputs.to(device), state)
        nll = network.head.nll(features, chunk.targets.to(device))
        scores.append(nll.detach().double().cpu())
        gradients = torch.autograd.grad(nll.mean(), parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.add_(gradient, alpha=-lr)
        state = detach_all(after)
    return torch.cat(scores).squeeze(-1).numpy()


@torch.inference_mode()
def score_lines(
    network: SequenceModel,
    ids: np.ndarray,
    lengths: np.ndarray,
    start_id: int,
    batch_size: int,
    seq_len: int,
) -> np.ndarray:
    """Negative log-likelihood in nats of every token of a text, in the text's order, each line from a fresh state.

    lengths: the number of tokens of each line, with its `<eos>` if it has one. The score of a line does not depend
    on the others: what rescoring an n-best list needs. At most `batch_size` lines of similar length are scored side by
    side, `seq_len` tokens at a time.
    """
    device = network.device
    scores = np.zeros(len(ids))
    starts = np.cumsum(lengths) - lengths
    for group in alike(lengths, batch_size, seq_len):
        targets = torch.full((int(lengths[group[-1]]), len(group)), IGNORE, device="cpu")
        places = [slice(starts[line], starts[line] + lengths[line]) for line in group]
        for column, place in enumerate(places):
            targets[: place.stop - place.start, column] = torch.from_numpy(ids[place].astype(np.int64))
        inputs = torch.cat([torch.full_like(targets[:1], start_id), targets[:-1].clamp(min=0)])
        state, chunks = network.initial_state(len(group)), []
        for read, wanted in zip(inputs.split(seq_len), targets.split(seq_len), strict=True):
            features, state = network(read.to(device), state)
            chunks.append(network.head.nll(features, wanted.to(device)).double().cpu())
        nll = torch.cat(chunks).numpy()
        for column, place in enumerate(places):
            scores[place] = nll[: place.stop - place.start, column]
    return scores


def alike(lengths: np.ndarray, batch_size: int, seq_len: int) -> Iterator[list[int]]:
    """Lines of similar length, the shortest first: none is padded to more than twice its length and a chunk."""
    group = list[int]()
    for line in sorted(np.flatnonzero(lengths), key=lambda line: int(lengths[line])):
        if group and (len(group) == batch_size or lengths[line] > 2 * lengths[group[0]] + seq_len):
            yield group
            group = []
        group.append(int(line))
    if group:
        yield group


class Score(NamedTuple):
    """What a model says of one text.

    log_prob: the natural logarithm of its probability. tokens: their number, `<eos>` at the end of each line included
    where the model has one. unknown: tokens read as `<unk>`, also those written so. Of each token, in their order, or
    None: token_log_probs: the logarithm of its probability; token_texts: the token itself; token_unknown: whether it is
    read as `<unk>`.
    """

    log_prob: float
    tokens: int
    unknown: int
    token_log_probs: tuple[float, ...] | None = None
    token_texts: tuple[str, ...] | None = None
    token_unknown: tuple[bool, ...] | None = None

    @property
    def perplexity(self) -> float:
        """exp of the mean of -ln P; not a number for a text without tokens."""
        return perplexity(-self.log_prob / self.tokens) if self.tokens else math.nan


class Reading(ABC):
    """A text that a model has read. What it holds does not change, so that it may go on in several ways.

    log_probs: ln P of every next token, (V,) float64.
    """

    log_probs: Tensor

    @abstractmethod
    def after(self, ids: Sequence[int]) -> "Reading":
        """The text with these tokens, at least one, behind it."""


class NetworkReading(Reading):
    def __init__(self, network: SequenceModel, state: Any, ids: Sequence[int]) -> None:
        """state: of the text before `ids`, at least one, which are read here."""
        self.network = network
        inputs = torch.tensor(list(ids), device=network.device).unsqueeze(-1)
        with torch.inference_mode(), network.evaluating():
            features, self.state = network(inputs, state)
            self.log_probs = network.head.log_probs(features[-1, 0]).double().cpu()

    def after(self, ids: Sequence[int]) -> Reading:
        return NetworkReading(self.network, self.state, ids)


def begin(network: SequenceModel, start_id: int, ids: Sequence[int] = ()) -> Reading:
    """The reading of a text from its beginning on."""
    return NetworkReading(network, network.initial_state(1), [start_id, *ids])


def sample(
    reading: Reading,
    length: int,
    temperature: float,
    generator: torch.Generator,
    banned: Sequence[int] = (),
    top_k: int | None = None,
    top_p: float | None = None,
) -> Iterator[int]:
    """Yield `length` token ids that continue what was read.

    Each is drawn from P(w)^(1/temperature), renormalised, without the `banned` ids; temperature 0 takes the
    most likely one. `top_k` keeps that many of the likeliest tokens; `top_p` in (0, 1] then the fewest likeliest whose
    probabilities reach that sum. Raises ValueError for a length or top_k < 1, a top_p outside (0, 1], a temperature
    < 0 or an infinite one, and where every token but the banned ones has the probability 0.
    """
    require_positive(length=length)
    require_temperature(temperature)
    if top_k is not None:
        require_positive(top_k=top_k)
    require_range("top_p", top_p, "in (0, 1] or null", top_p is None or (is_number(top_p) and 0 < top_p <= 1))
    token = None
    for _ in range(length):
        reading = reading if token is None else reading.after([token])
        log_p = require_numbers(reading.log_probs).clone()
        log_p[list(banned)] = -torch.inf
        if log_p.max() == -torch.inf:
            raise ValueError(
                "every token that may be written has the probability 0: give allow_unk=true, or another prompt"
            )
        if temperature == 0:
            token = int(log_p.argmax())
        else:
            p = keep_likeliest(((log_p - log_p.max()) / temperature).softmax(-1), top_k, top_p)
            token = int(torch.multinomial(p, 1, generator=generator))
        yield token


def require_numbers(log_p: Tensor) -> Tensor:
    """What a reading gave. Raises ValueError where it is not a number, or of an infinite probability."""
    if not bool((log_p < torch.inf).all()):
        raise ValueError("the model gives no finite probabilities: its weights are damaged or have diverged")
    return log_p


def keep_likeliest(p: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """The probabilities (V,), 0 for tokens outside the `top_k` likeliest or the likeliest that make up `top_p`."""
    if top_k is None and top_p is None:
        return p
    sorted_p, order = p.sort(descending=True, stable=True)
    if top_k is not None:
        sorted_p[top_k:] = 0
    if top_p is not None:
        before = sorted_p.cumsum(0) - sorted_p  # the likeliest token always stays
        sorted_p[before >= top_p * sorted_p.sum()] = 0
    return torch.zeros_like(p).scatter(0, order, sorted_p)
