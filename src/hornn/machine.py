"""What this machine is and what it gives to this process. No torch here."""

import platform
import resource
import sys
from functools import cache
from pathlib import Path


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


def peak_memory_mb() -> float:
    """The most memory that was resident in this process so far."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # ru_maxrss begins at the parent's size on Linux; elsewhere it is all there is
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**10
