"""How many faults are tried, and where they strike: the same ones for a seed.

HORNN_FAULTS: cases of each kind in `make faults`. HORNN_FAULTS_SEED: another number gives other places.
"""

import os
import random
from typing import Any

import pytest

COUNT = int(os.environ.get("HORNN_FAULTS", "20"))
SEED = int(os.environ.get("HORNN_FAULTS_SEED", "0"))
GOLDEN = 0.6180339887498949  # its multiples spread evenly over (0, 1), however many are taken


def cases(few: int, share: float = 1.0) -> list[Any]:
    """Numbers of cases: `few` for every run of the tests, the rest of COUNT x `share` for `make faults` alone."""
    many = range(few, max(few, round(COUNT * share)))
    return [
        *(pytest.param(number, id=f"seed{SEED}-{number}") for number in range(few)),
        *(pytest.param(number, id=f"seed{SEED}-{number}", marks=pytest.mark.faults) for number in many),
    ]


def draw(name: str, number: int) -> random.Random:
    """The dice of one case."""
    return random.Random(f"{SEED} {name} {number}")


def spread(name: str, number: int, last: int) -> int:
    """A number from 1 to `last`, evenly spread over the cases of a kind."""
    return 1 + int((draw(name, -1).random() + number * GOLDEN) % 1 * last)
