"""The kernels of a GPU, run on the CPU by Triton's interpreter, against the loop over `step` in float64."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from hornn.cells.base import Cell
from hornn.cells.elman import Rnn
from hornn.cells.gru import Gru
from hornn.cells.hornn import Hornn
from hornn.cells.leaky import LeakyRnn
from hornn.cells.lstm import Lstmp
from hornn.kernels import fused, library
from hornn.kernels.fused_cells import FusedGru, FusedLeak, FusedLstm
from hornn.kernels.table import NATIVE, Kernels
from hornn.scan import choose_backend
from kernels.test_scans import check, draw_smooth
from kernels.test_table import BOUNDABLE, OTHERS, run_cell
from kernels.tolerance import SCAN_ERROR, error

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
TESTS = Path(__file__).parents[1]
interpreted = pytest.mark.skipif(not INTERPRETED, reason="runs within test_by_the_interpreter")


@pytest.fixture(autouse=True)
def numpy_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter's scalars are arrays of one number, which NumPy 2.4 no longer takes for an int."""
    if not INTERPRETED:
        return
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_all(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_all)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="runs the others")
def test_by_the_interpreter() -> None:
    """In a process of its own: Triton decides on its import how kernels run."""
    if find_spec("triton") is None:
        pytest.skip("needs Triton")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, cwd=TESTS.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:]


@interpreted
@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu"])
@pytest.mark.parametrize(
    ("kind", "order"), [("rnn", 1), *((f"hornn{k}", 3) for k in ("_fofe", "_max", "_gated"))]
)
@pytest.mark.parametrize(("T", "B", "H"), [(2, 3, 10), (5, 18, 17)])
def test_the_scan_is_the_loop(kind: str, order: int, activation: str, T: int, B: int, H: int) -> None:
    check(*draw_smooth(kind, order, activation, T, B, H), fused.FusedScan)


@pytest.mark.parametrize(
    ("cell", "bound", "message"),
    [
        (
            LeakyRnn(4, 5),
            None,
            "there are native kernels for Rnn, .*Scrn, StackedRnn; use auto, eager, graph",
        ),
        (Lstmp(4, 5), None, "there are native kernels for Rnn, "),
        (Rnn(4, 5).bfloat16(), None, "compute in fp32, its weights are torch.bfloat16"),
        (Hornn(4, 5), 1.0, "bounds the gradient of a state that holds several steps"),
        (Gru(4, 5), 1.0, "has no native kernel with this recurrence"),
        (Gru(4, 5, reset_after=False), None, "a GPU has no kernel for reset_after=false"),
        (Rnn(4, 5), None, "need Triton, which is not installed"),
    ],
)
def test_a_cell_that_cannot(
    cell: Cell, bound: float | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=f"on this cuda: .*{message}"):
        choose_backend("native", cell, torch.device("cuda"), bound)


def test_tensors_that_do_not_fit() -> None:
    u, h, W = torch.zeros(2, 3, 4), torch.zeros(1, 3, 4), torch.zeros(1, 4, 4)
    for tensors, in_bf16, message in (
        ((u, h, W), True, "multiply in fp32, not in bf16"),
        ((u.double(), h, W), False, "take fp32 tensors of one GPU"),
        ((u, h.to("meta"), W), False, "take fp32 tensors of one GPU"),
        ((u, h, W[:, :3]), False, "a native scan takes u"),
    ):
        with pytest.raises(ValueError, match=message):
            fused.FusedScan.apply(*tensors, None, "sum", "tanh", None, in_bf16)


def runs(name: str, bound: float | None) -> bool:
    cell = (BOUNDABLE | OTHERS)[name](4)
    refuse = NATIVE[type(cell)].on_gpu
    return refuse is not None and refuse(cell, bound) is None


@interpreted
@pytest.mark.parametrize(("T", "B", "H"), [(1, 3, 5), (4, 18, 17)])
@pytest.mark.parametrize(
    ("name", "bound"),
    [
        *((name, bound) for name in BOUNDABLE for bound in (None, 0.5) if runs(name, bound)),
        *((name, None) for name in OTHERS if runs(name, None)),
    ],
)
def test_a_cell_is_the_loop(
    name: str, bound: float | None, T: int, B: int, H: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Kernels(fused.FusedScan, FusedLstm, FusedGru, FusedLeak)
    monkeypatch.setattr(Kernels, "of", lambda u: ours)
    monkeypatch.setattr(library, "why_not", lambda: None)
    expected, found = (run_cell(name, dtype, T, B, H, bound) for dtype in (torch.float64, torch.float32))
    errors = {result: error(found[result], expected[result]) for result in expected}
    assert max(errors.values()) < SCAN_ERROR, errors
