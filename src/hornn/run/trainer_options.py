"""The arguments of Lightning's trainer that a run takes, and why others are refused."""

import os
from collections.abc import Mapping
from typing import Any

import torch

UNREAD = "would leave data unread or updates uncounted: leave it out; trainer.max_steps makes a run short"
BOUNDS = "would overrule trainer.max_steps, trainer.max_epochs and the schedule: leave it out"
CLIP = "would clip nothing here: leave it out; optimizer.clip bounds the gradient"
NOTHING = "would do nothing here: leave it out"
# Key -> the values under which a run is what its result says of it, and why no other one is taken. null is one always.
TAKEN: dict[str, tuple[tuple[Any, ...], str]] = {
    "limit_train_batches": ((), UNREAD),
    "limit_val_batches": ((), UNREAD),
    "limit_test_batches": ((), UNREAD),
    "overfit_batches": ((0,), UNREAD),
    "fast_dev_run": ((False,), UNREAD),
    "accumulate_grad_batches": ((1,), UNREAD),
    "check_val_every_n_epoch": ((1,), UNREAD),
    "val_check_interval": ((), UNREAD),
    "reload_dataloaders_every_n_epochs": ((0,), UNREAD),
    "num_sanity_val_steps": ((0,), "would count validation data twice: leave it out"),
    "sync_batchnorm": ((False,), NOTHING),
    "model_registry": ((), NOTHING),
    "min_steps": ((), BOUNDS),
    "min_epochs": ((), BOUNDS),
    "gradient_clip_val": ((), CLIP),
    "gradient_clip_algorithm": ((), CLIP),
    "precision": (
        (32, "32", "32-true"),
        "would take the weights out of fp32: leave it out; network.precision says how training multiplies",
    ),
    "strategy": (("auto", "ddp"), "is none of auto and ddp, the two that a run can have"),
    "deterministic": ((True, False, "warn"), "is none of true, false and warn"),
}
STARTED_BY = ("MASTER_ADDR", "SLURM_NTASKS", "TORCHELASTIC_RUN_ID")  # say where the first machine is


def is_one_process(settings: Mapping[str, Any]) -> bool:
    """Whether these say that the run has one process, whichever of several a cluster says that this one is."""
    return (
        settings.get("devices") in (1, "1")
        and settings.get("num_nodes") in (None, 1)
        and settings.get("strategy") in (None, "auto")
    )


def check_trainer(settings: Mapping[str, Any]) -> None:
    """Refuse devices that are not there, and options under which a run would not be what its result says."""
    accelerator, devices = settings.get("accelerator"), settings.get("devices")
    if accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise ValueError(
            f"trainer.accelerator={accelerator} needs a CUDA device, this machine has none: use trainer=cpu"
        )
    for key, (allowed, why) in TAKEN.items():
        value = settings.get(key)
        if value is not None and value not in allowed:
            raise ValueError(f"trainer.{key}={value} {why}")
    for key, lowest in (("log_every_n_steps", 0), ("num_nodes", 1)):
        value = settings.get(key)
        if value is not None and (type(value) is not int or value < lowest):
            raise ValueError(f"trainer.{key} must be a whole number >= {lowest}, got {value!r}")
    too_few = devices in ("0", []) or (type(devices) is int and devices < 1 and devices != -1)
    if too_few or type(devices) in (bool, float):
        raise ValueError(
            f"trainer.devices must be a number >= 1, a list such as [0,1], or auto, got {devices!r}"
        )
    if (settings.get("num_nodes") or 1) > 1 and not any(name in os.environ for name in STARTED_BY):
        raise ValueError(
            f"trainer.num_nodes={settings['num_nodes']} needs MASTER_ADDR, the address of the first machine, and each "
            "machine's NODE_RANK in the environment"
        )
    epochs = settings.get("max_epochs")
    if epochs is not None and epochs != -1 and epochs < 1:
        raise ValueError(f"trainer.max_epochs must be >= 1, or -1 for no bound, got {epochs}")
