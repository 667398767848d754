"""What a cell tells of its feedback, by name: each path against the docstring's product, written anew."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

from hornn.cells.base import Cell
from hornn.cells.deep import DeepRnn
from hornn.cells.elman import RnnState
from hornn.cells.gru import Gru
from hornn.cells.hornn import FofeHornn, GatedHornn, Hornn, HornnState
from hornn.cells.hornn_acoustic import ReluHornn, SigmoidHornn
from hornn.cells.leaky import LeakyRnn
from hornn.cells.lstm import Lstm, LstmState
from hornn.cells.scrn import Scrn, ScrnState

B, INPUT, H = 2, 3, 4


def drawn(cell: Cell, *shapes: tuple[int, ...]) -> tuple[Tensor, list[Tensor]]:
    """The input's part of a step, and states of these shapes, by weights that differ from one another."""
    torch.manual_seed(1)
    for weight in cell.parameters():
        torch.nn.init.normal_(weight)
    cell.double().requires_grad_(False)
    u = cell.project_input(torch.randn(1, B, INPUT, dtype=torch.float64))[0]
    return u, [torch.randn(*shape, dtype=torch.float64) for shape in shapes]


def test_gates_are_named_after_their_blocks() -> None:
    lstm, gru = Lstm(INPUT, H), Gru(INPUT, H)
    u, (h, c) = drawn(lstm, (B, H), (B, H))
    for block, gate in enumerate("ifgo"):
        W = lstm.W_h[block * H : (block + 1) * H]
        assert_close(lstm.paths(u, LstmState(h, c))[f"W_h^{gate} h_{{t-1}}"], h @ W.mT)
    u, (h,) = drawn(gru, (B, H))
    for block, gate in enumerate("rzn"):
        W = gru.W_h[block * H : (block + 1) * H]
        assert_close(gru.paths(u, RnnState(h))[f"W_h^{gate} h_{{t-1}}"], h @ W.mT)


def test_the_leaky_units_feed_back_through_their_matrix() -> None:
    cell = LeakyRnn(INPUT, H)
    u, (h,) = drawn(cell, (B, H))
    assert_close(cell.paths(u, RnnState(h)), {"W_h h_{t-1}": h @ cell.W_h.mT})


def test_the_scrn_tells_its_context_from_its_fast_units() -> None:
    cell = Scrn(INPUT, H, context_size=2, alpha=0.8, embedded_input=False)
    u, (h, s) = drawn(cell, (B, H), (B, 2))
    paths = cell.paths(u, ScrnState(h, s))
    s_t = 0.8 * s + 0.2 * u[:, H:]
    assert cell.P is not None
    assert_close(paths["context"], s_t @ cell.P.mT)
    assert_close(paths["h_{t-1}"], h @ cell.R.mT)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [ReluHornn, SigmoidHornn])
def test_acoustic_taps_are_one_step_and_n_steps_back(kind: Callable[..., Any]) -> None:
    cell = kind(INPUT, H, n=3)
    u, (history,) = drawn(cell, (3, B, H))
    paths = cell.paths(u, HornnState(history))
    assert_close(paths["U_1 h_{t-1}"], history[0] @ cell.U_1.mT)
    assert_close(paths["U_n h_{t-3}"], history[2] @ cell.U_n.mT)


@pytest.mark.parametrize("kind", [Hornn, FofeHornn, GatedHornn, ReluHornn, SigmoidHornn])
def test_paths_that_are_summed_add_up(kind: Callable[..., Any]) -> None:
    cell = kind(INPUT, H, n=3) if issubclass(kind, ReluHornn) else kind(INPUT, H, order=3)  # type: ignore[arg-type]
    u, (history,) = drawn(cell, (3, B, H))
    paths = cell.paths(u, HornnState(history))
    feedback = [path for name, path in paths.items() if name not in ("input", "pooled")]
    assert_close(sum(feedback), paths["pooled"])


@pytest.mark.parametrize("kind", [Hornn, FofeHornn, GatedHornn])
def test_each_path_is_of_one_state(kind: Callable[..., Any]) -> None:
    cell = kind(INPUT, H, order=3)
    u, (history,) = drawn(cell, (3, B, H))
    for n in (1, 2, 3):
        alone = torch.zeros_like(history)
        alone[n - 1] = history[n - 1]
        paths = cell.paths(u, HornnState(alone))
        assert [k for k in (1, 2, 3) if paths[f"h_{{t-{k}}}"].any()] == [n]


def test_the_layers_of_a_transition_are_counted_as_the_equations_count_them() -> None:
    cell = DeepRnn(INPUT, H, transition_depth=3, shortcuts=True)
    u, (h,) = drawn(cell, (B, H))
    paths = cell.paths(u, RnnState(h))
    assert list(paths) == ["W_1 h_{t-1}", "S_2 h_{t-1}", "S_3 h_{t-1}"]
    for level, name in enumerate(paths):
        matrix = cell.plus[level].S if level else cell.plus[0].W
        assert_close(paths[name], F.linear(h, matrix))  # type: ignore[arg-type]
