"""How a network's weights start."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.hornn import FofeHornn
from hornn.initialization import make_sparse
from hornn.network import SequenceModel


def test_sparse_start() -> None:
    torch.manual_seed(0)
    weight = torch.randn(2, 30, 50)
    make_sparse(weight, 20)
    assert (weight != 0).sum(-1).tolist() == [[20] * 30] * 2
    assert_close(torch.linalg.matrix_norm(weight, ord=2), torch.ones(2))
    with pytest.raises(ValueError, match=r"recurrent_fan_in must be at most the state's width 50, got 51"):
        make_sparse(weight, 51)


def test_network_starts_as_asked() -> None:
    cell = partial(FofeHornn, hidden_size=80, order=2)
    network = SequenceModel(
        [1] * 500, cell, 90, init_std=0.05, embedding_std=0.2, output_std=0.0, recurrent_fan_in=20
    )
    assert float(network.cells[0].W_in.detach().std()) == pytest.approx(0.05, rel=0.05)
    assert float(network.embedding.weight.detach().std()) == pytest.approx(0.2, rel=0.05)
    assert not network.head.W_out.any()
    assert (network.cells[0].W_h != 0).sum(-1).unique().tolist() == [20]
