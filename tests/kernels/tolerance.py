"""How close the kernels come to the readable code in float64, and whether they can be built at all."""

import os
import shutil

import pytest
from torch import Tensor

NO_COMPILER = shutil.which(os.environ.get("CXX", "c++")) is None
needs_compiler = pytest.mark.skipif(NO_COMPILER, reason="needs a C++ compiler: CXX, or c++ on the PATH")

# A sum of n rounded products is off by about sqrt(n) 6e-8 of its terms' size; here n is at most 8 * 50 or 2 * 130,
# and up to 31 steps pass it on to the next. The bound leaves these 1e-6 some room, and is far below what a wrong
# term, tap or index would give.
SCAN_ERROR = 2e-5


def error(found: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest number expected."""
    assert found.shape == expected.shape
    assert found.isfinite().all()
    return float((found.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
