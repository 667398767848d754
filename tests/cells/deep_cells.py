"""Small deep cells with weights drawn at random."""

from typing import Any

from hornn.cells.deep import DeepRnn, StackedRnn
from reference.cases import fill, seeded

T, B, INPUT, H, BETWEEN, OUT = 6, 3, 4, 5, 7, 3
STARRED = {"transition_activation": "lp", "output_activation": "maxout", "pieces": 3, "p": 1.7}


def deep_cell(seed: int, **arguments: Any) -> DeepRnn:
    return fill(DeepRnn(input_size=INPUT, hidden_size=H, **arguments), seeded(seed))


def stacked_cell(seed: int, **arguments: Any) -> StackedRnn:
    return fill(StackedRnn(input_size=INPUT, hidden_size=H, **arguments), seeded(seed))
