"""What a network loses when it knows the last k words alone."""

from typing import Any

import numpy as np
import torch

from hornn.analysis.unroll import find_places
from hornn.data.vocabulary import count_classes
from hornn.metrics import perplexity
from hornn.network import SequenceModel

BLOCK = 200  # targets at most that follow one another, whose windows are read together
WITHIN = 0.01  # a perplexity is as good as with the whole text where it is higher by this share at most
BOUNDS = (10, 100, 1000, 10_000)  # counts in the training text that begin a class of words


def find_blocks(length: int, lags: int, targets: int) -> np.ndarray:
    """The targets (blocks, size) of equal blocks spread over a text: as many as asked, or up to one more a block.

    No token is a target twice. Raises ValueError where the text is too short.
    """
    blocks = -(-targets // BLOCK)
    size = -(-targets // blocks)
    behind = size + lags - 1  # of a block's first target: a window may end behind its block
    least = lags + behind + (blocks - 1) * size
    if length <= least:
        raise ValueError(
            f"the text has {length:,} tokens, and lags={lags} and targets={targets} need more than {least:,}: "
            "lower them"
        )
    first = find_places(length - behind, lags, blocks)
    return first[:, None] + np.arange(size)


@torch.inference_mode()
def score_known(network: SequenceModel, ids: np.ndarray, blocks: np.ndarray, lags: int) -> np.ndarray:
    """-ln P(w_t | w_{t-k} .. w_{t-1}) in nats for k = 1..lags: (lags, targets), the targets t as in `blocks`, flat.

    Exact: for each k the network reads k tokens from its initial state. A window of `lags` tokens begins before every
    token of a block; its step k knows k tokens, so that each target finds all its k in `lags` windows.
    """
    scores = np.empty((lags, blocks.size))
    size = blocks.shape[1]
    for number, block in enumerate(blocks):
        first = block[0] - lags  # where the first window begins
        inputs = ids[first + np.arange(lags)[:, None] + np.arange(size + lags - 1)]
        inputs = torch.from_numpy(inputs.astype(np.int64)).to(network.device)
        targets = torch.from_numpy(ids[block].astype(np.int64)).to(network.device)[None]
        features, _ = network(inputs, network.initial_state(inputs.size(1)))
        for k in range(1, lags + 1):
            own = features[k - 1 : k, lags - k : lags - k + size].contiguous()
            scores[k - 1, number * size : (number + 1) * size] = network.head.nll(own, targets)[0].cpu()
    return scores


def describe_known(
    known: np.ndarray, whole: np.ndarray, targets: np.ndarray, counts: list[int]
) -> dict[str, Any]:
    """Perplexity by k, and with the whole text before each target, for all targets and by how often training has them.

    known (lags, N) and whole (N) are in nats; targets (N) are ids, `counts` how often the training text has each id.
    """
    class_of = np.digitize(np.asarray(counts)[targets], BOUNDS)
    classes = {}
    for number, label in enumerate(count_classes(BOUNDS)):
        if (chosen := class_of == number).any():
            classes[label] = curve(known[:, chosen], whole[chosen])
    return {**curve(known, whole), "by_count": classes}


def curve(known: np.ndarray, whole: np.ndarray) -> dict[str, Any]:
    return {
        "targets": len(whole),
        "perplexity": [perplexity(float(mean)) for mean in known.mean(axis=1)],
        "whole": perplexity(float(whole.mean())),
    }


def effective_memory(known: dict[str, Any]) -> int:
    """The number of known words from which on the perplexity is within 1 % of the whole text's; at most the last."""
    losses = [k for k, ppl in enumerate(known["perplexity"], 1) if not ppl <= (1 + WITHIN) * known["whole"]]
    return min((losses or [0])[-1] + 1, len(known["perplexity"]))
