"""What names a run: the hash of the part of its config that can change the result, and its folder. No torch here."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

# Keys that cannot change what a run computes; the seed names the run beside the hash.
WITHOUT_EFFECT = (
    "seed",
    "run_dir",
    "overwrite",
    "checkpoint_every",
    "logger",
    "sweep",
    "data.root",
    "data.cache_dir",
    "data.url",
    "trainer.enable_progress_bar",
    "trainer.log_every_n_steps",
)
# What decides a model of counts; nothing of gradient descent has a part in it. Modules whose models are counted:
COUNTED = ("hornn.baselines.ngram.", "hornn.baselines.cache.")
COUNTS_READ = ("model", "data")
COLUMNS = ("batch_size", "seq_len", "eval_batch_size")  # of the data, which counts read in one column
# In a run's folder: the resolved config, the best epoch's weights, what it continues from.
CONFIG, BEST, LAST = "config.yaml", "best.ckpt", "last.ckpt"


def plain(cfg: DictConfig) -> dict[str, Any]:
    """A config as resolved dicts, lists and numbers."""
    config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    assert isinstance(config, dict)
    return config  # type: ignore[return-value]


def is_counted(model: Any) -> bool:
    """Whether this config node names a model of counts, which no network's settings touch."""
    return isinstance(model, Mapping) and str(model.get("_target_")).startswith(COUNTED)


def effective(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config that can change the result."""
    kept: dict[str, Any] = json.loads(json.dumps(config))
    for dotted in WITHOUT_EFFECT:
        *parents, key = dotted.split(".")
        node = kept
        for parent in parents:
            node = node.get(parent) or {}
        node.pop(key, None)
    if kept.get("init_from"):  # weights of the same seed: the seed names the run beside the hash
        kept["init_from"] = kept["init_from"].replace(f"/seed={config['seed']}/", "/seed=*/")
    if is_counted(kept.get("model")):
        kept = {key: kept[key] for key in COUNTS_READ}
        kept["data"] = {key: value for key, value in kept["data"].items() if key not in COLUMNS}
    return kept


def config_hash(config: Mapping[str, Any]) -> str:
    """Ten hexadecimal digits that name the effective part of a config."""
    return hashlib.sha256(json.dumps(effective(config), sort_keys=True).encode()).hexdigest()[:10]


def run_folder(config: Mapping[str, Any], model: str, data: str) -> Path:
    """Where a run goes: its `run_dir`, or outputs/<model>/<data>/<config hash>/seed=<seed>.

    `model` and `data` are the names of the chosen files; a variant of a corpus other than the full one is named too.
    """
    if config["run_dir"]:
        return Path(str(config["run_dir"]))
    variant = config["data"].get("variant", "full")
    corpus = data if variant == "full" else f"{data}-{variant}"
    return Path("outputs", model, corpus, config_hash(config), f"seed={config['seed']}")
