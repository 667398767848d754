"""Where a result comes from: program, libraries and machine."""

import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import torch

from hornn import machine
from hornn.command_line.ending import RUNS_ON_GPU
from hornn.data.base import Data
from hornn.places import PACKAGE, PLACES
from hornn.run.code import CODE, other_code

PARTS = ("output_layer", "time_loop")  # of a network, which multiply in a precision each
PROGRAM = ("src", "conf", "sweeps", "pyproject.toml")  # what decides a result, of all that the checkout holds


def peak_memory_mb(device: torch.device) -> float:
    """The most memory this process held: on the GPU where it trained on one, else resident in the host's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return machine.peak_memory_mb()


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    parts = [machine.processor(), machine.vectors(), f"{torch.get_num_threads()} threads"]
    return f"{device.type} ({', '.join(filter(None, parts))})"


def runs_on_gpu(device: torch.device) -> int | None:
    """The most runs of a sweep that share the GPU at a time, as its launcher says; None on a CPU."""
    return int(os.environ.get(RUNS_ON_GPU, 1)) if device.type == "cuda" else None


def circumstances(data: Data, device: torch.device) -> dict[str, Any]:
    """All of result.json that speaks of the data, the machine, the libraries and the time, once a run is over."""
    return {
        "peak_memory_mb": peak_memory_mb(device),
        "baselines": data.baselines(),
        "device": device_name(device),
        "runs_on_gpu": runs_on_gpu(device),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {key: value for key, value in data.describe().items() if key != "path"},
        "versions": versions(),
    }


# They lead git elsewhere, as where a hook of somebody's repository starts a training.
OTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def versions() -> dict[str, str]:
    names = ("hornn", "torch", "lightning", "hydra-core", "omegaconf", "wandb", "torchmetrics", "numpy")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}


def commit() -> dict[str, Any]:
    """The commit of the checkout that this program lies in and whether `PROGRAM` had changes; null outside one.

    A new file counts as a change, unless it is a table, which a result holds whole.
    """
    root = PACKAGE.parents[1]

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "--no-optional-locks", "-C", root, *words],
                capture_output=True,
                check=True,
                env={name: value for name, value in os.environ.items() if name not in OTHER_REPOSITORY},
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return os.fsdecode(done.stdout).strip()

    # A package may lie in somebody's repository.
    ours = git("rev-parse", "--show-toplevel") == str(root.resolve())
    status = git("status", "--porcelain", "--untracked-files=all", "--", *PROGRAM) if ours else None
    if status is None:
        return {"commit": None, "dirty": None}
    changed = [line for line in status.splitlines() if not line.startswith("?? sweeps/")]
    return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changed)}


class Starts:
    """The starts of a run that was cut off and continued, each with its program and its seconds up to now.

    `program` is this start's program, `overrides` what its command line said, less where this machine keeps corpora,
    `machine` what computes: the device, and the precisions of the output layer and of the time loop. The checkpoints
    carry the list on, `past` is what they brought.
    """

    def __init__(self, program: Mapping[str, Any], overrides: Sequence[str] = ()) -> None:
        self.program = dict(program)
        places = {f"data.{place}" for place in PLACES}
        self.overrides = [word for word in overrides if word.lstrip("+").partition("=")[0] not in places]
        self.began = datetime.now(UTC)
        self.clock = time.monotonic()
        self.machine: dict[str, Any] = {}
        self.past: list[dict[str, Any]] = []

    def compute_on(self, device: torch.device, output_layer: str, time_loop: str) -> None:
        self.machine = {"device": device_name(device), "output_layer": output_layer, "time_loop": time_loop}

    def all(self) -> list[dict[str, Any]]:
        started, seconds = self.began.isoformat(timespec="seconds"), time.monotonic() - self.clock
        here = {**self.program, **self.machine, "started": started, "seconds": seconds}
        return [*self.past, here]

    def precisions(self) -> dict[str, list[str]]:
        """By part of the network, in which it was, one after the other, as far as the starts say."""
        return precisions_of(self.all())

    def other_precisions(self) -> dict[str, str]:
        """By part, in which it was before this start, where that is another one."""
        before = {part: kinds[-1] for part, kinds in precisions_of(self.past).items() if kinds}
        return {part: kind for part, kind in before.items() if kind != self.machine[part]}

    def other_code(self) -> str:
        """How the code of the model differs from the code before this start, in words; empty where it does not."""
        return other_code(self.past[-1].get(CODE), self.program.get(CODE, {})) if self.past else ""

    def summary(self) -> dict[str, Any]:
        """The last start's overrides and commit, `dirty` where any start's was, and the time of all, for a result."""
        starts = self.all()
        return {
            "overrides": self.overrides,
            **self.program,
            "dirty": any(start["dirty"] for start in starts) or self.program["dirty"],
            "wall_seconds": sum(start["seconds"] for start in starts),
            "starts": starts,
        }


def precisions_of(starts: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    # the time loop was in fp32 before starts said so
    told = [{"time_loop": "fp32", **start} for start in starts if "output_layer" in start]
    return {part: [kind for kind, _ in groupby(start[part] for start in told)] for part in PARTS}
