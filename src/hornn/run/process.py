"""What makes a process of ours fast: how it keeps memory, and what it takes for zero."""

import ctypes
import sys

import torch

# glibc's mallopt options and values above any tensor here
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
NEVER = 2**31 - 1


def set_up_process() -> None:
    """Keep freed memory and flush denormal numbers, before any work."""
    keep_freed_memory()
    flush_denormals()


def keep_freed_memory() -> None:
    """Let freed blocks stay in the process, for the next tensor of their size.

    By default glibc gives a large block back to the system at once, and the next update gets it as fresh pages: nearly
    ten thousand page faults an update at 400 units and 10,000 words, about 12 % of its time. Without glibc nothing
    happens: other allocators keep what is freed.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(MMAP_THRESHOLD, NEVER)
            mallopt(TRIM_THRESHOLD, NEVER)


def flush_denormals() -> None:
    """Let numbers below 1.2e-38 be 0, in this thread and in threads that it starts from now on.

    A processor computes with them a hundred times slower, and there are many: a gradient that fades over 50 steps, the
    momentum of a word not seen for a thousand updates. They took 50 % of the time of the SCRN's update. Where the
    processor cannot flush them nothing happens.
    """
    torch.set_flush_denormal(True)
