"""How this process keeps memory that tensors have given back."""

import ctypes
import sys

# glibc's mallopt options and values above any tensor here
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Let freed blocks stay in the process, for the next tensor of their size.

    By default glibc gives a large block back to the system at once, and the next update gets it as fresh pages: nearly
    ten thousand page faults an update at 400 units and 10,000 words, an eighth of its time. Without glibc nothing
    happens: other allocators keep what is freed.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(MMAP_THRESHOLD, NEVER)
            mallopt(TRIM_THRESHOLD, NEVER)
