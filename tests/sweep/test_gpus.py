"""GPUs that jobs take and give back."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornn.sweep.gpus import Pool, gpu_names, gpus_wanted
from hornn.sweep.workers import Workers


def test_gpus_are_taken_and_given_back() -> None:
    pool = Pool(["0", "1"], 2)
    assert pool.take(0) == []
    assert [pool.take(1), pool.take(1), pool.take(2)] == [["0"], ["1"], ["0", "1"]]
    assert pool.take(1) is None
    assert pool.take(0) == []
    pool.give_back(["1"])
    assert pool.take(2) is None
    assert pool.take(1) == ["1"]


def test_a_job_that_another_process_has_gives_its_gpu_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hornn.sweep.workers.claim", lambda folder: None)
    job: Any = SimpleNamespace(run_dir=tmp_path, gpus=1, claim=None, status="queued", error=None)
    workers: Any = SimpleNamespace(pool=Pool(["0"], 1), left=[])
    workers._leave = lambda job, status, error: workers.left.append(status)
    Workers._try(workers, job, watched=0)
    assert workers.left == ["elsewhere"]
    assert workers.pool.take(1) == ["0"]
    Workers._try(workers, job, watched=0)
    assert workers.left == ["elsewhere"], "there is no GPU for it"


def test_gpus_that_are_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu_names([0, 3]) == ["0", "3"]
    with pytest.raises(
        ValueError, match=r"names a GPU twice: hydra\.launcher\.per_gpu puts several jobs on one"
    ):
        gpu_names([0, 0])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-7f")
    assert gpu_names("auto") == ["2", "GPU-7f"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,-1,1")
    assert gpu_names("auto") == ["0"], "CUDA shows none behind the first that there is not"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu_names("auto") == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_names("auto") == []
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: GPU-1)'\necho 'GPU 1: B (UUID: GPU-2)'\n")
    tool.chmod(0o755)
    assert gpu_names("auto") == ["0", "1"]


def test_a_driver_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], timeout: float, **_: Any) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(ValueError, match=r"nvidia-smi does not answer: name the GPUs, such as hydra"):
        gpu_names("auto")


@pytest.mark.parametrize(
    ("accelerator", "devices", "names", "count"),
    [
        ("cpu", 4, ["0"], 0),
        ("auto", 1, [], 0),
        ("auto", 1, ["0"], 1),
        ("gpu", 1, ["0", "1"], 1),
        ("gpu", "2", ["0", "1"], 2),
        ("cuda", -1, ["0", "1"], 2),
    ],
)
def test_gpus_wanted(accelerator: str, devices: Any, names: list[str], count: int) -> None:
    assert gpus_wanted(accelerator, devices, names) == count


@pytest.mark.parametrize(
    ("devices", "names", "message"),
    [
        (4, ["0", "1"], r"needs 4 GPU\(s\), the launcher has 2 \(0, 1\)"),
        (-1, [], r"needs 1 GPU\(s\), the launcher has 0 \(none\)"),
        ([1], ["0", "1"], r"trainer.devices=\[1\] in a sweep: give their number"),
        ("0,1", ["0", "1"], r"trainer.devices=0,1 in a sweep: give their number"),
    ],
)
def test_gpus_that_there_are_not(devices: Any, names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpus_wanted("gpu", devices, names)
