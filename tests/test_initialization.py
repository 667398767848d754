"""How a network's weights start."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from hornn.cells.elman import Rnn
from hornn.cells.hornn import FofeHornn
from hornn.initialization import make_sparse
from hornn.network import SequenceModel


def test_sparse_start() -> None:
    torch.manual_seed(0)
    weight = torch.randn(2, 30, 50)
    make_sparse(weight, 20)
    assert (weight != 0).sum(-1).tolist() == [[20] * 30] * 2
    assert_close(torch.linalg.matrix_norm(weight, ord=2), torch.ones(2))
    norms = torch.linalg.vector_norm(weight, dim=-1)
    assert_close(norms, norms[:, :1].expand(-1, 30))  # rows are scaled first, then the whole
    assert float((weight > 0).sum() / (weight != 0).sum()) == pytest.approx(0.5, abs=0.1)
    sizes = (weight.abs() / weight.abs().amax(-1, keepdim=True))[weight != 0]
    assert [float((sizes < share).double().mean()) for share in (0.25, 0.5, 0.75)] == pytest.approx(
        [0.25, 0.5, 0.75], abs=0.1
    )  # of U(-1, 1)
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


def test_the_std_of_the_network_is_that_of_its_table_and_output_unless_asked() -> None:
    network = SequenceModel([1] * 500, partial(Rnn, hidden_size=80), 90, init_std=0.05)
    for weight in (network.embedding.weight, network.head.W_out):
        assert float(weight.detach().std()) == pytest.approx(0.05, rel=0.05)


def test_vectors_that_are_read_as_they_are_have_no_start() -> None:
    with pytest.raises(ValueError, match=r"network.embedding_std=0.2 has no effect on vectors"):
        SequenceModel([1] * 5, partial(Rnn, hidden_size=8), input_width=88, embedding_std=0.2)


class OwnStart(Rnn):
    """A cell whose parameters start in four ways: drawn, drawn and replaced, another module's, a value."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        torch.nn.init.orthogonal_(self.W_h)
        self.drawn_then_scaled = self.weight(hidden_size, hidden_size)
        self.drawn_then_scaled.data.div_(torch.linalg.matrix_norm(self.drawn_then_scaled.detach(), ord=2))
        self.norm = torch.nn.LayerNorm(hidden_size)
        self.gate = torch.nn.Parameter(torch.tensor(0.5))


def test_only_drawn_weights_start_with_the_std_of_the_network() -> None:
    cell = SequenceModel([1] * 9, partial(OwnStart, hidden_size=60), 90, init_std=0.05).cells[0]
    assert float(cell.W_in.detach().std()) == pytest.approx(0.05, rel=0.05)
    assert_close(cell.W_h @ cell.W_h.T, torch.eye(60), rtol=0, atol=1e-5)
    assert_close(torch.linalg.matrix_norm(cell.drawn_then_scaled, ord=2), torch.tensor(1.0))
    assert (cell.norm.weight == 1).all()
    assert cell.gate == 0.5
    assert float(Rnn(90, 60).W_in.detach().std()) == pytest.approx(0.1, rel=0.05)
