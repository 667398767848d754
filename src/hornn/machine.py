"""What this machine is and what it gives to this process. No torch here."""

import os
import platform
import resource
import sys
from functools import cache
from pathlib import Path

# What matrices are multiplied with, the fastest first: the system's word and the usual one.
VECTORS = {
    "amx_tile": "AMX",
    "avx512_fp16": "AVX-512 FP16",
    "avx512_bf16": "AVX-512 BF16",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
}


@cache
def cpuinfo() -> dict[str, str]:
    """What Linux tells of the first processor, such as its `model name`; nothing where it tells nothing."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        text = ""
    known: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        known.setdefault(key.strip(), value.strip())
    return known


def processor() -> str:
    """The name of the processor."""
    return cpuinfo().get("model name") or platform.processor() or platform.machine()


def processor_flags() -> list[str]:
    """The extensions that the processor has, as far as the system tells."""
    return (cpuinfo().get("flags") or cpuinfo().get("Features") or "").split()


def vectors() -> str:
    """The fastest of the `VECTORS` that the processor has; empty where it has none, or the system does not tell.

    One name may stand for processors of several generations, whose speeds differ.
    """
    flags = processor_flags()
    return next((word for flag, word in VECTORS.items() if flag in flags), "")


def peak_memory_mb() -> float:
    """The most memory that was resident in this process so far."""
    try:
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    except (OSError, IndexError):
        # ru_maxrss begins at the parent's size on Linux; elsewhere it is all there is
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def memory_bytes() -> int:
    """The memory that this process may have: the machine's, or less where a limit is set (ulimit -v)."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return machine if limit == resource.RLIM_INFINITY else min(machine, limit)
