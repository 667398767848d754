"""What no search may be: without these rules it would choose by test text, or heed no word of the command line."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from omegaconf import DictConfig

from hornn.checks import require_positive
from hornn.data.content import content_of
from hornn.run.identity import text_keys

OF_LAUNCHER = ("gpus", "per_gpu", "program")  # what a search takes of the launcher's keys
# Keys of data that decide what is scored: validation scores of two values do not compare.
OF_SCORES = {
    *("train", "valid", "test", "valid_bytes", "name", "set", "variant", "frame_length"),
    *("unit", "lowercase", "eos", "min_count", "max_size"),
}


def check_numbers(cfg: DictConfig) -> None:
    """Raise ValueError for numbers of trials that cannot be, and for a `pruning` without its numbers."""
    require_positive(trials=cfg.trials, jobs=cfg.jobs, batch=cfg.batch)
    if cfg.jobs > cfg.batch:
        raise ValueError(
            f"jobs={cfg.jobs}: only batch={cfg.batch} trials are drawn at a time: give fewer jobs, or a larger batch, "
            "which makes another search"
        )
    if cfg.pruning is not None and not (
        isinstance(cfg.pruning, DictConfig) and {"trials", "epoch"} <= cfg.pruning.keys()
    ):
        raise ValueError(f"pruning must hold trials and epoch, or be null, got {cfg.pruning}")


def check_run(config: Mapping[str, Any], choices: Mapping[str, Any]) -> None:
    """Raise ValueError where trials would share a folder, be a table, or be chosen by test text."""
    for key in ("run_dir", "overwrite"):
        if config[key]:
            raise ValueError(
                f"{key}={config[key]} in a search: each trial has its own folder and continues in it"
            )
    if choices.get("sweeps") or config["sweep"] != {"name": None}:
        raise ValueError(
            "a search is of one model on one corpus: leave out sweeps; `python src/train.py -m sweeps=...` runs them"
        )
    if config["data"].get("valid_bytes") == 0:
        raise ValueError(
            f"data={choices['data']} validates on its test text, by which nothing may be chosen: cut validation text "
            "from the training text with data.valid_bytes=1000000"
        )
    data = config["data"]
    if {"valid", "test"} <= {*text_keys(data)} and content_of(["valid"], data) == content_of(["test"], data):
        raise ValueError(
            f"data.valid={data['valid']} is the test text, by which nothing may be chosen: give another file than "
            f"data.test={data['test']}, such as lines cut from the training text"
        )


def check_launcher(words: Iterable[str]) -> None:
    """Raise ValueError for a word that chooses or sets a launcher or a sweeper: a search starts its trials itself."""
    for word in words:
        key = word.lstrip("+~").partition("=")[0]
        allowed = key.removeprefix("hydra.launcher.") in OF_LAUNCHER or word == "hydra/launcher=process"
        if re.match(r"hydra[./](launcher|sweeper)", key) and not allowed:
            raise ValueError(
                f"{word} has no effect on a search, which starts its trials on this machine: leave it out; jobs= says "
                "how many run at a time, hydra.launcher.gpus= on which GPUs"
            )


def check_constant(key: str) -> None:
    """Raise ValueError for a key whose values make scores that do not compare."""
    group, _, name = key.partition(".")
    if group == "data" and name in OF_SCORES:
        raise ValueError(
            f"space.{key} cannot be searched: it decides what validation scores, and by each value another text or "
            f"vocabulary would be scored; give {key}= one value"
        )
