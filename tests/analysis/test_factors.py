"""What learned factors became, and which words their units read, on weights set by hand."""

from functools import partial

import pytest
import torch

from hornn.analysis.factors import SEEN, measure_factors
from hornn.cells.scrn import Scrn
from hornn.network import SequenceModel

WORDS = ["often", "loud", "against", "rare"]
COUNTS = [SEEN, SEEN, 5 * SEEN, SEEN - 1]


def test_factors_rise_and_each_unit_has_its_own_words() -> None:
    """Unit 1 is the slowest; it reads `against`, whose input is the most negative, before all others."""
    cell = partial(Scrn, hidden_size=2, context_size=3, adaptive=True, alpha=0.5)
    network = SequenceModel(COUNTS, cell, 5, precision="fp32", backend="eager")
    read = torch.tensor([[0.1, 0.1, 0.9], [0.8, 0.2, 0.3], [0.2, -0.7, 0.1], [9.0, 9.0, 9.0]])
    with torch.no_grad():
        network.cells[0].beta.copy_(torch.tensor([0.0, 3.0, -2.0]))  # type: ignore[union-attr,operator]
        network.embedding.weight[:, 2:] = read
    (layer,) = measure_factors(network, WORDS, COUNTS)
    expected = torch.tensor([-2.0, 0.0, 3.0]).sigmoid().tolist()
    assert layer["layer"] == 1
    assert layer["values"] == pytest.approx(expected)
    assert [unit["factor"] for unit in layer["units"]] == pytest.approx(expected)
    assert [unit["words"] for unit in layer["units"]] == [
        ["often", "loud", "against"],
        ["loud", "against", "often"],
        ["against", "loud", "often"],
    ]
