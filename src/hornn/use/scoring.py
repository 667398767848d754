"""How a network reads text to score it, and how text is drawn from what a model expects."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from hornn.checks import is_number, require_positive, require_range, require_temperature
from hornn.data.base import IGNORE
from hornn.data.streams import ChunkStream
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


Reader = Callable[[Sequence[int]], Tensor]  # further ids of a text -> ln P of every next token, (V,) float64


def read_on(network: SequenceModel, start_id: int) -> Reader:
    """A reader that begins in the initial state and carries it from call to call."""
    state = network.initial_state(1)
    before = [start_id]

    @torch.inference_mode()
    def read(ids: Sequence[int]) -> Tensor:
        nonlocal state, before
        inputs = torch.tensor([*before, *ids], device=network.device).unsqueeze(-1)
        with network.evaluating():
            features, state = network(inputs, state)
            log_p: Tensor = network.head.log_probs(features[-1, 0]).double().cpu()
        before = []
        return log_p

    return read


def sample(
    read: Reader,
    prompt: Sequence[int],
    length: int,
    temperature: float,
    generator: torch.Generator,
    banned: Sequence[int] = (),
    top_k: int | None = None,
    top_p: float | None = None,
) -> Iterator[int]:
    """Yield `length` token ids that continue `prompt`, which may be empty, by what a fresh reader says of it.

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
    ids = prompt
    for _ in range(length):
        log_p = require_numbers(read(ids)).clone()
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
        ids = [token]


def require_numbers(log_p: Tensor) -> Tensor:
    """What a reader gave. Raises ValueError where it is not a number, or of an infinite probability."""
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
