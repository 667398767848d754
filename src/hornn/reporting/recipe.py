"""What a row's run is meant to be: the values that its config files and overrides give. How a result departs from it.

A small part of what Hydra does with the same files, which would take the report many seconds: the values of the
chosen files, of config.yaml, of the experiment, of the sweep file and of the row, each on top of those before.
Interpolated values are left out.
"""

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml


def load(path: Path) -> dict[str, Any]:
    """A file of keys and values. Raises ValueError for anything else."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold keys and values, got {type(content).__name__}")
    return content


def resolve(run: Collection[str], base: Mapping[str, Any], conf: Path) -> dict[str, Any]:
    """Dotted key -> value, for the overrides `run` of a row in a file that gives `base` to all its runs.

    Raises ValueError for a choice that `conf` does not have.
    """
    choices, values = split(base, "sweeps", conf)
    for word in run:
        key, text = word.split("=", 1)
        if (conf / key).is_dir():
            choices[key] = text
        else:
            values[key] = yaml.safe_load(text)
    layers = [read(conf, "config")]
    if "experiment" in choices:
        layers.append(read(conf, f"experiment/{choices.pop('experiment')}"))
    layers.append((choices, values))
    chosen = {group: choice for theirs, _ in layers for group, choice in theirs.items()}
    recipe: dict[str, Any] = {}
    for group, choice in chosen.items():
        if choice is not None and not group.startswith("hydra/"):
            recipe |= {f"{group}.{key}": value for key, value in read(conf, f"{group}/{choice}")[1].items()}
    for _, theirs_set in layers:
        recipe |= theirs_set
    return {key: value for key, value in recipe.items() if not key.startswith("hydra.")}


INIT_FROM = "init_from"  # the weights that a run starts from
# Where a run is computed is said by its device, not by its recipe.
MACHINE = ("trainer.accelerator", "trainer.devices", "trainer.strategy", "network.backend")
COPY = "network.head."  # says what `head` says


@cache
def read(conf: Path, name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Choices and values of a config file, those of the files that it includes below its own."""
    path = conf / f"{name}.yaml"
    if not path.is_file():
        group, _, choice = name.partition("/")
        known = sorted(
            str(file.relative_to(conf / group).with_suffix("")) for file in (conf / group).rglob("*.yaml")
        )
        raise ValueError(f"unknown {group} {choice!r}; it is one of: {', '.join(known)}")
    return split(load(path), name.rpartition("/")[0], conf)


def split(content: Mapping[str, Any], folder: str, conf: Path) -> tuple[dict[str, str], dict[str, Any]]:
    choices: dict[str, str] = {}
    values: dict[str, Any] = {}
    for item in content.get("defaults", ()):
        if isinstance(item, dict):
            choices |= {key.removeprefix("override ").lstrip("/"): choice for key, choice in item.items()}
        elif item != "_self_":
            theirs, set_there = read(conf, item[1:] if item.startswith("/") else f"{folder}/{item}")
            choices, values = choices | theirs, values | set_there
    return choices, values | flatten({key: value for key, value in content.items() if key != "defaults"})


def flatten(node: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in node.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{path}{key}.")
        elif "${" not in str(value):
            flat[f"{path}{key}"] = value
    return flat


def departures(recipe: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Where the config of a result is not what was meant: `trainer.max_epochs=15, not 20`.

    Keys that the config does not hold are passed over: they have no effect, or are younger than the result. Of the
    weights that it starts from it counts whether there are any.
    """
    held = {
        key: value
        for key, value in flatten(config).items()
        if key not in MACHINE and not key.startswith(COPY)
    }
    if held.get(INIT_FROM) and recipe.get(INIT_FROM):
        held.pop(INIT_FROM)
    other = [
        f"{key}={held[key]}, not {value}"
        for key, value in recipe.items()
        if key in held and not equal(held[key], value)
    ]
    return other + [
        f"{key}={value}, not given" for key, value in held.items() if key not in recipe and value is not None
    ]


def equal(one: Any, other: Any) -> bool:
    """1e-5 without a point is text to YAML 1.1, but not to Hydra."""
    try:
        return float(one) == float(other)
    except (TypeError, ValueError):
        return bool(one == other)
