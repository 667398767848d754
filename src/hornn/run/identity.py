"""Who a run is: the words that chose its parts, the values that decide its numbers, the name made of both. No torch."""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hornn.checks import in_home
from hornn.data.content import CHANGED, FOLDER, checksum_of_texts, content_of, state_of
from hornn.data.download import checksum
from hornn.places import PLACES
from hornn.recipe import COUNTED, TEXT, flatten
from hornn.result import RESULT
from hornn.run.code import CODE, WATCHES, code_of_run
from hornn.run.epochs import METRICS

# Choices that decide numbers; what a run logs to, the machine and the recipe that its values came from do not.
GROUPS = ("model", "data", "network", "head", "optimizer", "schedule")
# Where a run is computed is on record beside its name: it may continue on another number of processes.
MACHINE = (
    "trainer.accelerator",
    "trainer.devices",
    "trainer.strategy",
    "trainer.num_nodes",
    "network.backend",
)
# Keys that cannot change what a run computes; the seed names the run beside its name.
WITHOUT_EFFECT = (
    "seed",
    "run_dir",
    "overwrite",
    "continue_from",  # the same numbers as from the first epoch on
    "checkpoint_every",
    "logger",
    "sweep",
    *(f"data.{place}" for place in PLACES),
    "trainer.enable_progress_bar",
    "trainer.max_time",  # ends a start of the run, not the run
    "trainer.profiler",
    "trainer.enable_model_summary",
    "trainer.log_every_n_steps",
)
CALLBACKS = "callbacks"  # of which those are part of a name that do not only watch
EARLY_STOPPING = "lightning.pytorch.callbacks.EarlyStopping"
INIT_FROM = "init_from"  # the key of the weights that a run starts from, or of the models that it mixes
COUNTS_READ = ("model", "data")  # all that decides a model of counts
COLUMNS = ("batch_size", "seq_len", "eval_batch_size")  # of the data, which counts read in one column
# In a run's folder: who it is, the best epoch's weights, what it continues from.
CONFIG, BEST, LAST = "config.yaml", "best.ckpt", "last.ckpt"
FILES = (RESULT, METRICS, BEST, LAST, CONFIG)  # that a run writes, and replaces when it is told to
SNAPSHOTS = "epoch-*.ckpt"  # weights of epochs that `callbacks=snapshots` was asked to keep
ADDED = Path(__file__).with_name("added_keys.yaml")

Config = dict[str, Any]


class Identity(NamedTuple):
    """A run among all others; made once, by `identify`, and handed on.

    choices: group -> the word that chose it. config: the values that decide the numbers, by group. where: what is on
    record beside them, by dotted key: the machine, and the absolute paths of text that `config` knows by its content.
    name: ten hexadecimal digits made of choices and config. folder: where the run's files go: its `run_dir`,
    or outputs/<model>/<corpus>/<name>/seed=<seed>. counted: whether the model is counted, not trained. code: the class
    of the model and its source, and sources of a user's own classes beside it, on record and no part of the name.
    """

    choices: dict[str, str]
    config: Config
    where: Config
    name: str
    seed: int
    folder: Path
    counted: bool
    code: Mapping[str, str] = {}

    @property
    def corpus(self) -> str:
        return corpus_word(self.choices, self.config)

    def settings(self) -> Config:
        """The values as a logger is told of them: `model` is the word that chose it, by which runs are grouped.

        Its arguments are `cell`.
        """
        return {**self.config, "model": self.choices["model"], "cell": self.config["model"]}

    def to_dict(self) -> Config:
        """All that a result or a checkpoint says of who its run is."""
        return {
            "name": self.name,
            "seed": self.seed,
            "choices": self.choices,
            "config": self.config,
            "where": self.where,
            CODE: dict(self.code),
        }


def identify(choices: Mapping[str, Any], config: Mapping[str, Any]) -> Identity:
    """The identity of a run with these choices and this resolved config, the instructions of its files included.

    Reads the text that the config names where that is not a published corpus. FileNotFoundError where it is not there.
    """
    chosen, kept = hashed_part(choices, config)
    if config.get("init_from_head") is True and config.get(INIT_FROM) is None and not is_counted(config):
        raise ValueError("init_from_head=true is of a run that starts from another one: give init_from=, too")
    data, seed, counted = config["data"], config["seed"], is_counted(config)
    known = flatten(config)
    where = {key: known[key] for key in MACHINE if known.get(key) is not None and not counted}
    text = data.get(TEXT)
    # A folder that is downloaded has the name of its choice.
    is_published = text == FOLDER and "url" in data and data["name"] == choices["data"]
    if text and not is_published:
        kept["data"] |= {"text": content_of(text, data)}
        where |= {f"data.{key}": str(in_home(data[key]).absolute()) for key in text_keys(data)}
    code = code_of_run(config)
    identity = Identity(chosen, kept, where, name_of(chosen, kept), seed, Path(), counted, code)
    default = default_folder(chosen, kept, identity.name, seed)
    return identity._replace(folder=Path(str(config["run_dir"])) if config["run_dir"] else default)


def require_same_text(identity: Identity, data: Mapping[str, Any]) -> None:
    """Raise ValueError where the text is no longer the one that the run is named after. data: of the config."""
    then = identity.config["data"].get("text")
    if then is not None and content_of(data[TEXT], data) != then:
        keys = ", ".join(f"{key}={path}" for key, path in identity.where.items() if key.startswith("data."))
        raise ValueError(f"the text {keys or data[TEXT]} {CHANGED}")


def is_of(texts: Mapping[str, str], result: Mapping[str, Any]) -> bool:
    """Whether a result is of these texts: by their content where they are here, else by what of their paths is said."""
    paths = {key: Path(path) for key, path in texts.items()}
    if all(path.is_file() and os.access(path, os.R_OK) for path in paths.values()):
        here = checksum_of_texts(checksum_at(path, state_of(path)) for path in paths.values())
        return bool(here == flatten(result.get("config") or {}).get("data.text"))
    where = result.get("where") or {}
    there = {key: Path(str(where.get(key))).parts for key in texts}
    return all(there[key][-len(path.parts) :] == path.parts for key, path in paths.items())


@cache
def checksum_at(path: Path, _state: str) -> str:
    return checksum(path, "sha256")


def default_folder(choices: Mapping[str, str], config: Mapping[str, Any], name: str, seed: int) -> Path:
    """Where a run's files go without `run_dir`."""
    return Path("outputs", choices["model"], corpus_word(choices, config), name, f"seed={seed}")


def corpus_word(choices: Mapping[str, str], config: Mapping[str, Any]) -> str:
    """The corpus in a word; one of several sets is named, too, and a variant other than the full one."""
    data = config["data"]
    part = data.get("set") or data.get("variant", "full")
    return choices["data"] if part == "full" else f"{choices['data']}-{part}"


def hashed_part(choices: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[dict[str, str], Config]:
    """The part of choices and resolved config that decides a run's numbers and name, without a text's content."""
    counted = is_counted(config)
    groups = COUNTS_READ if counted else GROUPS
    dropped = {*WITHOUT_EFFECT, *MACHINE, *(f"data.{key}" for key in text_keys(config.get("data", {})))}
    if counted:
        dropped |= {f"data.{key}" for key in COLUMNS}
    kept = {
        key: value for key, value in without(config, dropped).items() if not counted or key in COUNTS_READ
    }
    if not counted and (steering := steering_callbacks(config.get(CALLBACKS))):
        kept[CALLBACKS] = steering
    else:  # as before there were any
        kept.pop(CALLBACKS, None)
    if starts := weights_given(config):  # weights of the same seed
        starts = [path.replace(f"/seed={config['seed']}/", "/seed=*/") for path in starts]
        kept[INIT_FROM] = starts if isinstance(config[INIT_FROM], list) else starts[0]
    return {group: str(choices[group]) for group in groups if choices.get(group)}, kept


def weights_given(config: Mapping[str, Any]) -> list[str]:
    """The checkpoints that `init_from` names: at most one of a network, a list of a mixture. ValueError otherwise."""
    given = config.get(INIT_FROM)
    counted = is_counted(config)
    if given is None:
        return []
    paths: list[str] = given if counted and isinstance(given, list) else [given]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        wanted = "a list of checkpoints" if counted else "the path of a checkpoint"
        raise ValueError(f"{INIT_FROM} must be {wanted} or null, got {given!r}")
    return paths


def steering_callbacks(nodes: Any) -> Config:
    """The callbacks of a config that may change numbers: the arguments and the class of each, by its name.

    The class of early stopping is left out: the names of runs held this callback before they held classes.
    """
    if not isinstance(nodes, Mapping):
        return {}
    steering = {
        name: node for name, node in nodes.items() if isinstance(node, Mapping) and not node.get(WATCHES)
    }
    classes = {name: node.get("_target_") for name, node in steering.items()}
    named = {name: {} if kind == EARLY_STOPPING else {"class": kind} for name, kind in classes.items()}
    return {name: {**without(node, ()), **named[name]} or True for name, node in steering.items()}


def is_counted(config: Mapping[str, Any]) -> bool:
    """Whether this config is of a model of counts, which is counted, not trained."""
    return bool(config.get("model", {}).get(COUNTED))


def text_keys(data: Mapping[str, Any]) -> list[str]:
    """The keys of a node of data that hold paths of text."""
    text = data.get(TEXT)
    return list(text) if isinstance(text, list) else []


def name_of(choices: Mapping[str, str], config: Mapping[str, Any]) -> str:
    """Ten hexadecimal digits that stand for these choices and values."""
    named = {"choices": dict(choices), "values": named_values(choices, config)}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:10]


def named_values(choices: Mapping[str, str], config: Mapping[str, Any]) -> Config:
    """Dotted key -> value, less the keys that were added later and stand at their neutral value."""
    neutral = {key: canonical(value) for key, value in neutral_values(choices).items()}
    values = {key: canonical(value) for key, value in flatten(config).items()}
    return {key: value for key, value in values.items() if key not in neutral or neutral[key] != value}


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Key -> its two values, None for one that is absent, of the choices and values in which two runs differ.

    one, other: what `Identity.to_dict` says of them.
    """
    mine, theirs = (
        {**choices, **named_values(choices, each.get("config") or {})}
        for each in (one, other)
        for choices in [each.get("choices") or {}]
    )
    return {
        key: (mine.get(key), theirs.get(key))
        for key in sorted(mine | theirs)
        if mine.get(key, ...) != theirs.get(key, ...)
    }


def other_run(held: Mapping[str, Any], identity: Identity, except_for: Collection[str] = ()) -> str:
    """Where a run that is on record is another one than `identity`'s: the first key that says so, with both values.

    held: what `Identity.to_dict` said of it. except_for: keys in which they may differ. Empty where it is the same run.
    """
    different = differing(held, identity.to_dict())
    if held.get("seed") != identity.seed:
        different["seed"] = (held.get("seed"), identity.seed)
    # null in one and absent in the other cannot be told apart in words: these come last
    alike = {key for key, (then, now) in different.items() if then is now}
    for key in sorted(different.keys() - set(except_for), key=lambda key: (key in alike, key)):
        then, now = different[key]
        return f"{key} is {then!r} there and {now!r} here"
    return ""


def neutral_values(choices: Mapping[str, str]) -> Config:
    """Key -> neutral value, of the keys that were added to what these choices take."""
    words = {f"{group}={choice}" for group, choice in choices.items()}
    return {
        entry["key"]: entry["neutral"]
        for entry in added_keys(ADDED)
        if "choice" not in entry or entry["choice"] in words
    }


@cache
def added_keys(path: Path) -> tuple[Config, ...]:
    return tuple(yaml.safe_load(path.read_text(encoding="utf-8")) or ())


def canonical(value: Any) -> Any:
    """The value with one spelling for numbers that are equal: 1 and 1.0 are one value of a config."""
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def without(node: Mapping[str, Any], dropped: Collection[str], path: str = "") -> Config:
    """A nested config without these dotted keys and without the instructions to Hydra or us, which begin with `_`."""
    return {
        key: without(value, dropped, f"{path}{key}.") if isinstance(value, Mapping) else value
        for key, value in node.items()
        if not str(key).startswith("_") and f"{path}{key}" not in dropped
    }
