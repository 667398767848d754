"""What is measured: the naive loops, torch's own models, and networks as asked for."""

import pytest
import torch
from torch import nn

from hornn.bench import work
from hornn.bench.plan import QUICK
from hornn.bench.work import FofeLoop, LstmLoop, Sizes, TorchModel, Variant
from hornn.cells.hornn import FofeHornn
from hornn.data.streams import ChunkStream
from hornn.scan import scan


def test_the_naive_loops_compute_what_they_stand_beside():
    torch.manual_seed(0)
    x = torch.randn(5, 2, 4)
    loop, cell = FofeLoop(4, 4), FofeHornn(4, 4, order=3, alpha=0.6)
    with torch.no_grad():
        cell.W_in.copy_(loop.W_in.weight)
        cell.W_h.copy_(torch.stack([tap.weight for tap in loop.taps]))
    torch.testing.assert_close(loop(x)[0], scan(cell, x, cell.initial_state(2))[0])
    lstm, cells = nn.LSTM(4, 4, bias=False), LstmLoop(4, 4)
    cells.cell.weight_ih.data, cells.cell.weight_hh.data = lstm.weight_ih_l0.data, lstm.weight_hh_l0.data
    torch.testing.assert_close(cells(x)[0], lstm(x)[0])


@pytest.mark.parametrize("layer", work.LAYERS)
def test_torch_scores_a_text_in_chunks_as_in_one_pass(layer):
    torch.manual_seed(0)
    ids = work.draw_text(20, 23).numpy()
    model = TorchModel(layer, Sizes(20, 4))
    whole, chunks = (work.score_with_torch(model, ChunkStream(ids, 0, 1, length)) for length in (23, 5))
    assert whole.shape == (23,)
    torch.testing.assert_close(chunks, whole)


def test_an_order_is_asked_for():
    assert work.build(Variant("hornn_fofe", 5, "eager"), QUICK.sizes).cells[0].order == 5
