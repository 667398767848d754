"""What a network says of whole sequences, step by step."""

from itertools import islice

import numpy as np
import torch

from hornn.data.sequences import SequenceStream
from hornn.network import SequenceModel


@torch.inference_mode()
def log_probs_of(network: SequenceModel, stream: SequenceStream) -> list[np.ndarray]:
    """ln P of each outcome at each step of each sequence, (N, V) fp32, in the order of `stream.examples`.

    stream: all columns of a split in one process. Raises ValueError for one whose batches are mixed.
    """
    if stream.seed is not None:
        raise ValueError("sequences in an order that is drawn cannot be told apart: give them without a seed")
    parts: list[list[np.ndarray]] = [[] for _ in stream.examples]
    chunks = iter(stream)
    for batch, number in zip(stream.batches, stream.chunks, strict=True):
        state, read = network.initial_state(len(batch)), 0
        for chunk in islice(chunks, number):
            with network.evaluating():
                features, state = network(chunk.inputs.to(network.device), state)
                log_probs = network.head.log_probs(features).cpu().numpy()
            # copies, so that what fills up a short one does not stay
            for column, example in enumerate(batch):
                parts[example].append(log_probs[: max(0, stream.lengths[example] - read), column].copy())
            read += len(log_probs)
    return [np.concatenate(each) for each in parts]
