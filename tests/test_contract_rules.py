"""Rules of the contract that no error of torch shows: a cell that breaks one would train, and report a wrong number."""

import re
from typing import Any, ClassVar, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hornn.cells.base import Cell, push
from hornn.cells.elman import Rnn, RnnState
from hornn.cells.mlp import UNITS
from hornn.contract import check_contract
from hornn.research import make_network

INPUT, H, K = 4, 8, 2


class State(NamedTuple):
    h: Tensor
    history: Tensor


class Plain(Cell):
    """The RNN with a state of its own, which holds the last K outputs, too."""

    activation = "tanh"

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W_in = self.weight(hidden_size, input_size)
        self.W_h = self.weight(hidden_size, hidden_size)

    def initial_state(self, batch_size: int) -> State:
        return State(self.zeros(batch_size, self.hidden_size), self.zeros(K, batch_size, self.hidden_size))

    def project_input(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W_in)

    def step(self, u_t: Tensor, state: State) -> tuple[Tensor, State]:
        h_t = torch.tanh(u_t + F.linear(state.h, self.W_h))
        return h_t, State(h_t, push(h_t, state.history))


class SeesTheNextInput(Rnn):
    def project_input(self, x: Tensor) -> Tensor:
        return super().project_input(x + torch.cat([x[1:], torch.zeros_like(x[:1])]))


class SeesTheNextOutput(Rnn):
    def project_output(self, y: Tensor) -> Tensor:
        return y + torch.cat([y[1:], torch.zeros_like(y[:1])])


class OutputSeesTheOneBefore(Rnn):
    def project_output(self, y: Tensor) -> Tensor:
        return y + torch.cat([torch.zeros_like(y[:1]), y[:-1]])


class MeanOverTime(Rnn):
    def project_output(self, y: Tensor) -> Tensor:
        return y - y.mean(0, keepdim=True)


class WeightsInAList(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.Us = [self.weight(H, H)]


class WeightsInAPart(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.part = nn.Identity()
        self.part.scales = {"first": (torch.ones(H),)}  # type: ignore[assignment]


class DrawnAndForgotten(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.scale = torch.randn(H)


class CountsInABuffer(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.register_buffer("steps", torch.zeros(1))

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        self.get_buffer("steps").add_(1)
        return super().step(u_t, state)


class DropsByTorch(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.drop = nn.Dropout(0.1)


class NormalisesOverColumns(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.norm = nn.BatchNorm1d(H)


class UnknownBound(Plain):
    activation = "tahn"


class CountersByAText(Plain):
    counters = "h"  # type: ignore[assignment]


class UnknownCounter(Plain):
    counters: ClassVar = ("steps",)


class UnknownHistory(Plain):
    histories: ClassVar = {"histroy": 0}


class HistoryWithoutThatPlace(Plain):
    histories: ClassVar = {"history": K}


class HistoryOfOneStep(Plain):
    histories: ClassVar = {"h": 0}


class HistoriesInAList(Plain):
    histories: ClassVar = ["history"]  # type: ignore[assignment]


class PathsAreATensor(Rnn):
    def paths(self, u_t: Tensor, state: RnnState) -> Any:
        return u_t


class PathWithoutColumns(Rnn):
    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        return {"input": u_t.sum()}


class PathsFail(Rnn):
    def paths(self, u_t: Tensor, state: RnnState) -> dict[str, Tensor]:
        return {"input": u_t + 1 / 0}


class ThreeValues(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        return *super().step(u_t, state), 1


FAULTS = [
    (SeesTheNextInput, "project_input mixes steps: each row must be a function of its own row alone"),
    (SeesTheNextOutput, "project_output mixes steps: each row must be a function of its own row alone"),
    (OutputSeesTheOneBefore, "project_output mixes steps"),
    (MeanOverTime, "project_output mixes steps"),
    (
        WeightsInAList,
        "self.Us holds a tensor that is neither trained nor kept: use self.weight, nn.ParameterList",
    ),
    (WeightsInAPart, "self.part.scales holds a tensor that is neither trained nor kept"),
    (DrawnAndForgotten, "self.scale holds a tensor that is neither trained nor kept"),
    (CountsInABuffer, "self.steps is set within a step: only y_t and the state are read"),
    (DropsByTorch, "drop draws for one process alone: use hornn.columns.drop"),
    (NormalisesOverColumns, "norm mixes columns: nn.LayerNorm takes each one alone"),
    (
        UnknownBound,
        '__init__ must set self.activation = "tanh", "sigmoid" or "relu", or "linear" for no bound, got ',
    ),
    (CountersByAText, "counters must be a tuple such as"),
    (UnknownCounter, "counters names 'steps'; the state has: h, history"),
    (UnknownHistory, "histories names 'histroy'; the state has: h, history"),
    (HistoryWithoutThatPlace, "histories has no place 2 in state.history (2, 3, 8)"),
    (HistoryOfOneStep, "histories has no place 0 in state.h (3, 8)"),
    (HistoriesInAList, "histories must be a dict such as"),
    (PathsAreATensor, "paths must give a dict of tensors (3, any), got a tensor (3, 8)"),
    (PathWithoutColumns, "paths must give input as (3, any) for 3 columns, got ()"),
    (PathsFail, "paths fails: ZeroDivisionError"),
    (ThreeValues, "step must return y_t and the next state, got a tuple of 3"),
]


@pytest.mark.parametrize(("cell", "says"), FAULTS, ids=[cell.__name__ for cell, _ in FAULTS])
def test_a_broken_rule_is_one_line_that_names_class_and_part(cell: type[Cell], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{cell.__name__}.{says}")) as caught:
        check_contract(cell(INPUT, H))
    assert "\n" not in str(caught.value)


class WithHistory(Plain):
    histories: ClassVar = {"history": -K, "of a subclass": 0}
    counters: ClassVar = ()


class WithAListOfNames(Rnn):
    """What is registered may stand in a list, too, and so may what torch computes from it."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.register_buffer("constant", torch.ones(H))
        self.weights = [self.W_in, self.W_h]
        self.again = (self.get_buffer("constant"), 2.0 * self.W_h)


class WithNorm(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.norm = nn.LayerNorm(H)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        return super().step(self.norm(u_t), state)


@pytest.mark.parametrize("cell", [Plain, WithHistory, WithAListOfNames, WithNorm])
def test_a_cell_that_keeps_the_rules_passes(cell: type[Cell]) -> None:
    check_contract(cell(INPUT, H))


@pytest.mark.parametrize("units", UNITS)
def test_every_kind_of_units_is_an_activation(units: str) -> None:
    """As the deep networks of the papers have them, maxout and L_p among them."""
    for key in ("state_activation", "output_activation"):
        cell: Any = make_network("dots_rnn", 11, hidden_size=H, **{key: units}).cells[0]
        check_contract(cell)
