"""What learned forgetting factors became, and which words their units listen to."""

from collections.abc import Sequence
from typing import Any

import torch

from hornn.cells.base import Cell
from hornn.network import SequenceModel

UNITS = 3  # of the slowest and of the fastest units, whose words are told
WORDS = 8  # of each unit
SEEN = 100  # times in the training text that a word must have come to be told


@torch.no_grad()
def measure_factors(
    network: SequenceModel, words: Sequence[str], counts: Sequence[int]
) -> list[dict[str, Any]]:
    """For each layer that learns factors: their values, rising; for the first layer what the end units read, too.

    Unit j reads u_j(w) of a word w (`Cell.factor_inputs`); its words are those of which |u_j(w)| is largest, among the
    words that the training text has at least `SEEN` times.
    """
    found = []
    for number, cell in enumerate(network.cells):
        assert isinstance(cell, Cell)
        if (factors := cell.learned_factors()) is not None:
            values = factors.flatten()
            order = values.argsort().tolist()
            read = read_by_words(network, cell, counts) if number == 0 else {}
            units = [
                {"factor": float(values[unit]), "words": [words[word] for word in read[unit]]}
                for unit in dict.fromkeys([*order[:UNITS], *order[-UNITS:]])
                if unit in read
            ]
            found.append({"layer": number + 1, "values": values[order].tolist(), "units": units})
    return found


def read_by_words(network: SequenceModel, cell: Cell, counts: Sequence[int]) -> dict[int, list[int]]:
    """Unit -> the ids of the words of which it reads most; nothing where units have no factors of their own."""
    known = torch.tensor(counts, device=network.device).ge(SEEN).nonzero().flatten()
    read = cell.factor_inputs(cell.project_input(network.embedding(known[None])))
    if read is None:
        return {}
    top = read[0].abs().topk(min(WORDS, len(known)), dim=0).indices
    return {unit: known[places].tolist() for unit, places in enumerate(top.T)}
