"""The GPUs that jobs share: each job has so many of them for itself, or a place on one beside others."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from hornn.checks import require_positive


class Pool:
    """`names` of GPUs with `per_gpu` places on each. Raises ValueError for a number of places that cannot be.

    hides: whether a job sees no other GPUs, also where it takes none.
    """

    def __init__(self, names: Sequence[str], per_gpu: int = 1, hides: bool = False) -> None:
        require_positive(**{"hydra.launcher.per_gpu": per_gpu})
        self.per_gpu = per_gpu
        self.hides = hides
        self.free = dict.fromkeys(names, per_gpu)

    def take(self, count: int) -> list[str] | None:
        """A place on each of `count` GPUs, the emptiest first; None while there are not that many."""
        emptiest = sorted((name for name in self.free if self.free[name]), key=lambda name: -self.free[name])
        if len(emptiest) < count:
            return None
        for name in emptiest[:count]:
            self.free[name] -= 1
        return emptiest[:count]

    def give_back(self, names: Sequence[str]) -> None:
        for name in names:
            self.free[name] += 1

    def wanted_by(self, config: Mapping[str, Any]) -> int:
        """How many GPUs a job of this config takes. Raises ValueError as `gpus_wanted` does."""
        trainer = config["trainer"]
        if not isinstance(trainer, dict):
            raise ValueError(f"trainer must hold keys and values, got {trainer!r}")
        return gpus_wanted(
            trainer.get("accelerator", "auto"), trainer.get("devices", "auto"), list(self.free)
        )


def find_pool(setting: Any, per_gpu: int) -> Pool:
    """The pool of `hydra.launcher.gpus`, see `gpu_names`: where a list says which GPUs, a job sees no other."""
    return Pool(gpu_names(setting), per_gpu, hides=setting != "auto")


def gpu_names(setting: Any) -> list[str]:
    """The GPUs that `hydra.launcher.gpus` names; auto: the GPUs that this process sees.

    Raises ValueError for a GPU that is named twice.
    """
    if isinstance(setting, Sequence) and not isinstance(setting, str):
        names = [str(name) for name in setting]
        if len(set(names)) < len(names):
            raise ValueError(
                f"hydra.launcher.gpus={names} names a GPU twice: hydra.launcher.per_gpu puts several jobs on one"
            )
        return names
    if setting != "auto":
        raise ValueError(f"hydra.launcher.gpus must be auto or a list such as [0,1], got {setting!r}")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        found = [name.strip() for name in visible.split(",")]
        # CUDA shows what stands before the first name of no GPU
        return list(dict.fromkeys(takewhile(lambda name: name not in ("", "-1"), found)))
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        return []
    except subprocess.TimeoutExpired as error:
        raise ValueError(
            "nvidia-smi does not answer: name the GPUs, such as hydra.launcher.gpus=[0,1], or [] for none"
        ) from error
    return [line.split()[1].rstrip(":") for line in listed.stdout.splitlines() if line.startswith("GPU ")]


def gpus_wanted(accelerator: str, devices: Any, names: Sequence[str]) -> int:
    """How many GPUs a job takes whose trainer has these settings.

    Raises ValueError where there are not that many, and for settings that name them.
    """
    if accelerator not in ("gpu", "cuda") and not (accelerator == "auto" and names):
        return 0
    every = devices in ("auto", -1, "-1")
    if not every and not str(devices).isdecimal():
        raise ValueError(
            f"trainer.devices={devices} in a sweep: give their number, hydra.launcher.gpus names them"
        )
    count = len(names) if every else int(devices)
    if count > len(names) or not names:
        raise ValueError(
            f"trainer.accelerator={accelerator} trainer.devices={devices} needs {max(count, 1)} GPU(s), the launcher "
            f"has {len(names)} ({', '.join(names) or 'none'}): use trainer=cpu, or name them with hydra.launcher.gpus"
        )
    return count
