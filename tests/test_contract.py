"""A cell that breaks its contract is refused before any training, in one line that names its class and the part."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from hornn.cells.elman import Rnn, RnnState
from hornn.contract import check_contract
from hornn.research import make_network
from reference.cases import MODEL_NAMES

INPUT, H = 4, 8


class Two(NamedTuple):
    h: Tensor
    c: Tensor


class Tuple(Rnn):
    def initial_state(self, batch_size: int) -> Any:
        return (self.zeros(batch_size, self.hidden_size),)


class BatchFirst(Rnn):
    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.zeros(self.hidden_size, batch_size))


class Double(Rnn):
    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(torch.zeros(batch_size, self.hidden_size, dtype=torch.float64))


class OutputAlone(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        return super().step(u_t, state)[0]


class OtherState(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, _ = super().step(u_t, state)
        return y_t, Two(y_t, y_t)


class Grows(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, _ = super().step(u_t, RnnState(state.h[:, : self.hidden_size]))
        return y_t, RnnState(torch.cat([state.h, y_t], -1))


class Narrow(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, after = super().step(u_t, state)
        return y_t[:, 1:], after


class OneColumn(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, after = super().step(u_t, state)
        return y_t.mean(0), after


class HalfOutput(Rnn):
    def project_output(self, y: Tensor) -> Tensor:
        return y.half()


class InPlace(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        state.h.mul_(0.5)
        return super().step(u_t, state)


class InputInPlace(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        h = u_t.add_(F.linear(state.h, self.W_h)).tanh_()
        return h, RnnState(h)


class EmbeddingInPlace(Rnn):
    def project_input(self, x: Tensor) -> Tensor:
        return super().project_input(x.mul_(2))


class MixesColumns(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        return super().step(u_t, RnnState(state.h - state.h.mean(0)))


class MixesInputs(Rnn):
    def project_input(self, x: Tensor) -> Tensor:
        return super().project_input(x - x.mean(1, keepdim=True))


class MixesSteps(Rnn):
    def project_input(self, x: Tensor) -> Tensor:
        return super().project_input(x.cumsum(0))


class Remembers(Rnn):
    past: Any = 0.0

    def step(self, u_t: Tensor, state: RnnState) -> Any:
        self.past = self.past + u_t
        return super().step(self.past, state)


class HasALossOfItsOwn(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, after = super().step(u_t, state)
        self.loss = y_t.square().mean()
        return y_t, after


class NoNumber(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, _ = super().step(u_t, state)
        return y_t / 0, RnnState(y_t)


class Fails(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        raise ValueError("unknown data 'ptb'")


class NoActivation(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        del self.activation


class CountsInIntegers(Rnn):
    def initial_state(self, batch_size: int) -> Any:
        return Two(*super().initial_state(batch_size), torch.zeros(batch_size, 1, dtype=torch.long))


class CountsOutsideTensors(Rnn):
    def initial_state(self, batch_size: int) -> Any:
        return Two(*super().initial_state(batch_size), 0)  # type: ignore[arg-type]


class LearnedStart(Rnn):
    def initial_state(self, batch_size: int) -> RnnState:
        return RnnState(self.W_h[0].expand(batch_size, -1))


class Unused(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.W_skip = self.weight(3, 3)


class OutsideAutograd(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        h_t = self.f(u_t + F.linear(state.h, self.W_h.data))
        return h_t, RnnState(h_t)


class NothingIsDifferentiated(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        y_t, _ = super().step(u_t, state)
        return y_t.detach(), RnnState(y_t.detach())


class ChangesWhatAutogradKeeps(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        h_t = super().step(u_t, state)[0].mul_(0.9)
        return h_t, RnnState(h_t)


class RootOfZero(Rnn):
    def step(self, u_t: Tensor, state: RnnState) -> Any:
        h_t = self.f(u_t + F.linear(state.h, self.W_h).square().sqrt())
        return h_t, RnnState(h_t)


class Orthogonal(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.W_h = torch.nn.Parameter(torch.linalg.qr(self.W_h.detach())[0])


class WeightWithoutNumbers(Rnn):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.E = self.weight(8, 0)


class NamedByAText(Rnn):
    recurrent = "W_h"  # type: ignore[assignment]


FAULTS = [
    (Tuple, "initial_state must give its state as a NamedTuple of tensors, got a tuple"),
    (BatchFirst, r"initial_state must give state.h as \(..., 3, any\) for 3 columns, got \(8, 3\)"),
    (Double, "initial_state must give state.h in torch.float32, as the weights, got torch.float64"),
    (OutputAlone, r"step must return y_t and the next state, got a tensor \(3, 8\)"),
    (OtherState, "step must give a state like the one before, a RnnState, got a Two"),
    (Grows, r"step must give state.h as \(3, 8\) for 3 columns, got \(3, 16\)"),
    (Narrow, "step gives y of width 7, where the cell says 8: tell super"),
    (OneColumn, r"step must give y_t as \(3, any\) for 3 columns, got \(8,\)"),
    (
        HalfOutput,
        "project_output must give y of all steps in torch.float32, as the weights, got torch.float16",
    ),
    (InPlace, r"step changes state\.h in place"),
    (InputInPlace, "step changes u_t in place"),
    (EmbeddingInPlace, "project_input changes x in place"),
    (MixesColumns, "step mixes columns"),
    (MixesInputs, "project_input mixes columns"),
    (MixesSteps, "project_input mixes steps"),
    (Remembers, "step gives other numbers when it is called again: remember nothing on self"),
    (HasALossOfItsOwn, "self.loss is set within a step: only y_t and the state are read"),
    (NoNumber, "step gives nan or inf within two steps"),
    (Fails, r"step fails: ValueError: unknown data 'ptb' \(.*test_contract.py:\d+; HYDRA_FULL_ERROR=1"),
    (NoActivation, "__init__ must set self.activation"),
    (Orthogonal, r"W_h must be contiguous, its strides are \(1, 8\): write \.contiguous\(\)"),
    (WeightWithoutNumbers, r"E holds no number, its shape is \[8, 0\]: leave it out"),
    (
        CountsInIntegers,
        "initial_state must give state.c in torch.float32, as the weights, got torch.int64: "
        "see self.zeros, and `counters`",
    ),
    (CountsOutsideTensors, r"initial_state must give state.c as a tensor \(..., 3, any\), got a int"),
    (LearnedStart, "initial_state must give state.h as a constant"),
    (Unused, "W_skip gets no gradient"),
    (OutsideAutograd, "W_h gets no gradient"),
    (NothingIsDifferentiated, "W_in gets no gradient"),
    (
        ChangesWhatAutogradKeeps,
        "step cannot be differentiated: where it changes a tensor of its own in place, make a new one",
    ),
    (RootOfZero, "W_h gets a gradient with nan or inf"),
    (NamedByAText, "recurrent must be a tuple such as"),
]


@pytest.mark.parametrize(("cell", "says"), FAULTS, ids=[cell.__name__ for cell, _ in FAULTS])
def test_a_fault_is_one_line_that_names_class_and_part(cell: type[Rnn], says: str) -> None:
    with pytest.raises(ValueError, match=rf"^{cell.__module__}\.{cell.__name__}\.{says}") as caught:
        check_contract(cell(INPUT, H))
    assert "\n" not in str(caught.value)


def test_a_weight_that_is_not_trained_needs_no_gradient() -> None:
    cell = Unused(INPUT, H)
    cell.W_skip.requires_grad_(False)
    check_contract(cell)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_cell_that_passes_is_left_as_it_was(name: str) -> None:
    cell: Any = make_network(name, 11, hidden_size=H).cells[0]
    random, weights = torch.get_rng_state(), [p.detach().clone() for p in cell.parameters()]
    check_contract(cell)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in cell.modules())
    assert all(map(torch.equal, weights, cell.parameters()))


class Linear(Rnn):
    """h_t = 0.5 h_{t-1} + u_t, of which all steps can be told at once."""

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        h = 0.5 * state.h + u_t + 0 * F.linear(u_t, self.W_h)
        return h, RnnState(h)

    def all_steps(self, u: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        outputs = []
        for u_t in u.unbind(0):
            y_t, state = self.step(u_t, state)
            outputs.append(y_t)
        return torch.stack(outputs), state


class Forgetful(Linear):
    """Its steps stay, and all at once forget the state that they begin with."""

    step = Linear.step

    def all_steps(self, u: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        return super().all_steps(u, RnnState(torch.zeros_like(state.h)))


class LosesTheEnd(Linear):
    step = Linear.step
    all_steps = Linear.all_steps

    def state_after(self, u: Tensor, state: RnnState) -> RnnState:
        return RnnState(2 * super().state_after(u, state).h)


class Detached(Linear):
    step = Linear.step

    def all_steps(self, u: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        y, end = super().all_steps(u, state)
        return y.detach(), end


class OutputsAlone(Linear):
    step = Linear.step

    def all_steps(self, u: Tensor, state: RnnState) -> Any:
        return super().all_steps(u, state)[0]


class NoState(Linear):
    step = Linear.step

    def all_steps(self, u: Tensor, state: RnnState) -> Any:
        y, end = super().all_steps(u, state)
        return y, tuple(end)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (Forgetful, "all_steps gives other outputs than the steps, from the state after two steps"),
        (LosesTheEnd, "state_after gives another state.h than the steps"),
        (Detached, "all_steps gives other gradients than the steps"),
        (OutputsAlone, "all_steps must return y and the state after all steps, got a tensor"),
        (NoState, "all_steps must give its state as a NamedTuple of tensors, got a tuple"),
    ],
)
def test_all_steps_at_once_are_the_steps(cell: type[Linear], says: str) -> None:
    check_contract(Linear(INPUT, H))
    with pytest.raises(ValueError, match=rf"\.{cell.__name__}\.{says}"):
        check_contract(cell(INPUT, H))


def test_large_weights_are_no_fault() -> None:
    """Rounding is of the largest numbers that are added up."""
    network = make_network("lstm", vocab_size=10, hidden_size=400, network={"init_std": 3.0})
    check_contract(network.cells[0])
