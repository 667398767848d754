"""The contract holds a cell of one's own that is unlike those in conf/model."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from cells import test_contract
from hornn.cells.elman import Rnn, RnnState


class Unusual(Rnn):
    """h_t = f(u_t + s W_h drop(h_{t-1})): it drops units, s is a number, W_h is not trained."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.drop = nn.Dropout(0.5)
        self.s = nn.Parameter(torch.tensor(0.5))
        self.W_h.requires_grad_(False)

    def step(self, u_t: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        return super().step(u_t, RnnState(self.s * self.drop(state.h)))


@pytest.mark.parametrize(
    "check",
    [
        test_contract.test_scan_is_the_loop_over_step,
        test_contract.test_every_parameter_gets_a_gradient,
        test_contract.test_state_dict_round_trip,
    ],
)
def test_a_cell_may_drop_units_learn_a_number_and_fix_a_matrix(
    check: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unusual.yaml").write_text(f"_target_: {__name__}.Unusual\n_partial_: true\nhidden_size: 8\n")
    monkeypatch.setattr(test_contract, "CELL_FOLDER", tmp_path)
    check("unusual")
