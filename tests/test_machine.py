"""What the program finds out about the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from hornn import machine
from hornn.machine import peak_memory_mb, processor, processor_flags, vectors

PRINT_PEAK = "from hornn.machine import peak_memory_mb; print(peak_memory_mb())"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_child_of_a_large_process_reports_its_own_peak() -> None:
    held = b"x" * (200 * 2**20)
    child = subprocess.run([sys.executable, "-c", PRINT_PEAK], capture_output=True, text=True, check=True)
    assert peak_memory_mb() > len(held) / 2**20
    assert 1 < float(child.stdout) < 100


def test_a_system_that_does_not_tell_the_peak_is_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda path: "VmSize: 5 kB\nThreads: 1\n")
    assert peak_memory_mb() > 1


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="needs Linux's /proc")
def test_the_processor_is_what_the_system_says_first() -> None:
    text = Path("/proc/cpuinfo").read_text()
    assert processor() in text
    assert processor_flags() == [] or " ".join(processor_flags()) in text


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ("fma avx avx2", "AVX2"),
        ("avx2 avx512f avx512_bf16", "AVX-512 BF16"),
        ("avx2 avx512f avx512_bf16 avx512_fp16 amx_tile", "AMX"),
        ("asimd", ""),
        ("", ""),
    ],
)
def test_processors_of_one_name_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, flags: str, word: str
) -> None:
    monkeypatch.setattr(machine, "processor_flags", flags.split)
    assert vectors() == word
