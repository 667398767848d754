"""The kernels of a GPU, run on the CPU by Triton's interpreter, against the loop over `step` in float64."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kernels.test_scans import check, draw_smooth

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
@pytest.mark.parametrize(("kind", "order"), [("rnn", 1), *((f"hornn{k}", 3) for k in ("", "_max", "_gated"))])
@pytest.mark.parametrize(("T", "B", "H"), [(2, 3, 10), (5, 18, 17)])
def test_the_scan_is_the_loop(kind: str, order: int, activation: str, T: int, B: int, H: int) -> None:
    from hornn.kernels.fused import FusedScan

    check(*draw_smooth(kind, order, activation, T, B, H), FusedScan)
