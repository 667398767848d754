"""What a process of ours sets up."""

import subprocess
import sys

import pytest
import torch

FLUSH = """
import torch
from hornn.run.process import set_up_process

set_up_process()
torch.set_num_threads(2)
tiny = torch.full((4_000_000,), 1e-20)  # more than one thread's share
print(torch.count_nonzero(tiny * 1e-19).item(), torch.count_nonzero(tiny * 1e-17).item())
"""


def test_denormal_numbers_are_zero_in_every_thread() -> None:
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush them")
    done = subprocess.run([sys.executable, "-c", FLUSH], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "4000000"]
