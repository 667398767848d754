import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hornn.kernels import library
from kernels.tolerance import NO_COMPILER

# Less optimised, so that they are built in half of the time.
OTHER_PROCESSORS = {"portable": ("-O1", "-fopenmp"), "avx2": ("-O1", "-march=haswell", "-fopenmp")}


@pytest.fixture(
    params=[
        "native",
        pytest.param("portable", marks=pytest.mark.slow),
        pytest.param("avx2", marks=pytest.mark.thorough),
    ],
    name="kernels",
)
def _kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels as built for this machine or for a lesser one, with freshly allocated memory full of NaN."""
    if NO_COMPILER:
        pytest.skip("needs a C++ compiler: CXX, or c++ on the PATH")
    if request.param != "native":
        cpuinfo = Path("/proc/cpuinfo")
        if platform.machine() != "x86_64" or not cpuinfo.exists():
            pytest.skip("the lesser processors are x86-64, seen on Linux")
        if request.param == "avx2" and "avx2" not in cpuinfo.read_text():
            pytest.skip("needs AVX2")
        monkeypatch.setattr(library, "_outcome", library.build(OTHER_PROCESSORS[request.param]))
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
