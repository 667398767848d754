"""The config that files and overrides give to a run, put together without Hydra, which would take a report too long.

A small part of what Hydra does with the same files: the chosen files, config.yaml, the experiment, the sweep file and
the overrides of a row, each on top of the ones before. A test holds it against Hydra for every row of every sweep file.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hornn.places import CONF, require_one
from hornn.result import DEPTH, SHOWN

# What a file says of its node to us: the model is counted, not trained; the keys of text files, or `python`.
COUNTED, TEXT = "_counted_", "_text_"
CHOICE = re.compile(r"\w[\w-]*(/\w[\w-]*)*")  # the word that chooses a file of a group

Values = dict[str, Any]


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Hydra reads it: 1e-5 is a number without a point, too."""


Loader.yaml_implicit_resolvers = {  # to Hydra a date is a text
    first: [(tag, words) for tag, words in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in Loader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d[\d_]*(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load(path: Path, loader: Any = Loader) -> Values:
    """A file of keys and values. Raises ValueError, which names it, for anything else, OSError where it is not read."""
    try:
        content = read_yaml(path.read_text(encoding="utf-8"), loader)
    except ValueError as error:
        quotes = "; a text with a colon and a blank in it stands in quotes" * ("mapping values" in str(error))
        raise ValueError(f"{path} is not YAML: {error}{quotes}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold keys and values, got {type(content).__name__}")
    defaults = content.get("defaults", [])
    if not isinstance(defaults, list) or not all(
        isinstance(word, str) for item in defaults for word in words_of(item)
    ):
        raise ValueError(f"{path}: defaults must list names of files, or GROUP: NAME")
    return content


def words_of(item: Any) -> Collection[Any]:
    """The name, or the groups, of an item of a list of defaults."""
    return item if isinstance(item, dict) else [item]


def read_yaml(text: str, loader: Any = Loader) -> Any:
    """The value that YAML of anybody holds: what is written there and no more.

    Raises ValueError for tags, which name constructors, for anchors and aliases, by which a short text becomes a value
    without end, for a value that is nested too deeply, and for what is not YAML.
    """
    try:
        depth = 0
        for event in yaml.parse(text, loader):
            if getattr(event, "tag", None) or getattr(event, "anchor", None):
                raise ValueError("tags (!), anchors (&) and aliases (*) are not read: write the value itself")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise ValueError(f"it is nested more than {DEPTH} deep")
        return yaml.load(text, loader)
    except Exception as error:  # the library lets through whatever int(), date() and their like raise
        raise ValueError(" ".join(str(error).split())) from error


def read_value(word: str) -> Any:
    """The value of an override KEY=VALUE. Raises ValueError, which names the override, for one that is not YAML."""
    try:
        return read_yaml(word.partition("=")[2])
    except ValueError as error:
        raise ValueError(f"{word[:SHOWN]!r} has no value: {error}") from error


def resolve(
    run: Iterable[str], base: Mapping[str, Any], conf: Path = CONF, own: Path | None = None
) -> tuple[dict[str, str], Values]:
    """Choices and config, for the overrides `run` of a row in a file that gives `base` to all its runs.

    own: a folder of the user's with further files. Raises ValueError for a choice that neither has, or both with
    different content, and for a value that is not YAML.
    """
    folders = folders_of(conf, own)
    given, values, removed = read_words(run, *split(base, "sweeps", folders), folders)
    layers = [read(folders, "config")]
    experiment = given.pop("experiment", None)
    if experiment is not None and "experiment" not in removed:
        layers.append(read(folders, f"experiment/{experiment}"))
        given = layers[-1][0] | given
    chosen = choose(folders, layers[0][0], given, removed)
    flat = values_of(chosen, folders)
    for _, theirs in layers:
        flat = merged(flat, theirs)
    flat = merged(without_keys(flat, removed), values)
    return chosen, nest({key: value for key, value in flat.items() if not key.startswith("hydra.")})


def read_words(
    run: Iterable[str], choices: Mapping[str, Any], values: Values, folders: tuple[Path, ...]
) -> tuple[dict[str, Any], Values, set[str]]:
    """The choices and dotted values once a row's overrides apply, and the keys and groups that the row removes."""
    choices, values, removed = dict(choices), dict(values), set[str]()
    for word in run:
        key, _, text = word.partition("=")
        if key.startswith("~"):
            removed.add(key := key[1:])
            choices.pop(key, None)
            values = without_keys(values, {key})
        elif text.startswith("{"):
            found = flatten({key.lstrip("+"): read_value(word)})
            if tight := next((each for each in found if ":" in each), None):
                raise ValueError(f"{word[:SHOWN]!r} has the key {tight!r}: write a blank behind each colon")
            values |= found
        elif any((folder / key).is_dir() for folder in folders):
            choices[key] = read_value(word) if text.startswith("[") else text
        else:
            values[key.lstrip("+")] = read_value(word)
    return choices, values, removed


def choose(
    folders: tuple[Path, ...], first: Mapping[str, Any], given: Mapping[str, Any], removed: Collection[str]
) -> dict[str, Any]:
    """The files of each group: `given` ones, or else what the data choose, such as an output layer, or `first` ones."""
    data = {**first, **given}.get("data")
    of_data = read(folders, f"data/{data}")[0] if data else {}
    choices = {**first, **of_data, **given}
    return {group: choice for group, choice in choices.items() if choice is not None and group not in removed}


def values_of(chosen: Mapping[str, Any], folders: tuple[Path, ...]) -> Values:
    """The dotted values of the chosen files; of some groups several files are chosen."""
    flat: Values = {}
    for group, choice in chosen.items():
        words = choice if isinstance(choice, list) else [choice]
        for word in words if not group.startswith("hydra/") else ():
            found = read(folders, f"{group}/{word}")[1]
            flat |= {f"{group}.{key}": value for key, value in found.items()}
    return flat


def merged(flat: Values, over: Values) -> Values:
    """The dotted values of both; `over` counts where both have a key. A null in `over` removes all keys below."""
    emptied = tuple(f"{key}." for key, value in over.items() if value is None)
    return {key: value for key, value in flat.items() if not key.startswith(emptied)} | over


def without_keys(values: Values, removed: Collection[str]) -> Values:
    """Dotted values without the removed keys and the keys below them."""
    below = tuple(f"{key}." for key in removed)
    return {key: value for key, value in values.items() if key not in removed and not key.startswith(below)}


def has_key(
    run: Iterable[str], base: Mapping[str, Any], key: str, conf: Path = CONF, own: Path | None = None
) -> bool:
    """Whether the config of `resolve` has this dotted key, one that only the environment gives a value included.

    Errors: as in `resolve`.
    """
    choices, config = resolve(run, base, conf, own)
    folders = folders_of(conf, own)
    if key in flatten(config):
        return True
    for group, choice in choices.items():
        start = f"{group.replace('/', '.')}."
        if key.startswith(start) and (path := find_file(folders, f"{group}/{choice}")):
            return key.removeprefix(start) in flatten(load(path))
    path = find_file(folders, "config")
    return path is not None and key in flatten(load(path))


def read_choice(group: str, choice: str, folders: Iterable[Path] = (CONF,)) -> Values:
    """The values that the file of a choice gives, from the first of the folders that has it.

    Raises ValueError for a choice that none has, or several with different content.
    """
    folders = tuple(folders)
    if not CHOICE.fullmatch(choice) or not find_file(folders, f"{group}/{choice}"):
        raise unknown(group, choice, folders)
    return nest(read(folders, f"{group}/{choice}")[1])


def folders_of(conf: Path, own: Path | None) -> tuple[Path, ...]:
    """Where files of the config are looked up, in Hydra's order."""
    return (conf, own) if own else (conf,)


def find_file(folders: Iterable[Path], name: str) -> Path | None:
    """A config file, from the first of the folders that has it."""
    paths = (folder / f"{name}.yaml" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


@cache
def read(folders: tuple[Path, ...], name: str) -> tuple[dict[str, str], Values]:
    """Choices and dotted values of a config file. Its own values win over the values of the files that it includes."""
    path = find_file(folders, name)
    if path is None:
        group, _, choice = name.partition("/")
        raise unknown(group, choice, folders)
    if "/" in name:
        require_one(name, folders)
    return split(load(path), name.rpartition("/")[0], folders)


def unknown(group: str, choice: str, folders: Iterable[Path]) -> ValueError:
    known = {
        str(file.relative_to(conf / group).with_suffix(""))
        for conf in folders
        for file in (conf / group).rglob("*.yaml")
    }
    return ValueError(f"unknown {group} {choice!r}; it is one of: {', '.join(sorted(known))}")


def split(
    content: Mapping[str, Any], folder: str, folders: tuple[Path, ...]
) -> tuple[dict[str, str], Values]:
    """Choices and dotted values of a config file's content; `folder`: the group that the file lies in."""
    choices: dict[str, str] = {}
    values: Values = {}
    for item in content.get("defaults", ()):
        if isinstance(item, dict):
            choices |= {group_of(key): choice for key, choice in item.items()}
        elif item != "_self_":
            theirs, set_there = read(folders, item[1:] if item.startswith("/") else f"{folder}/{item}")
            choices, values = choices | theirs, values | set_there
    own = flatten({key: value for key, value in content.items() if key != "defaults"})
    # The environment decides the others.
    fixed = {key: value for key, value in own.items() if "${" not in str(value)}
    return choices, values | fixed


def group_of(key: str) -> str:
    """The group of an item of a list of defaults: `head` of `override /head@_global_.head`."""
    return key.removeprefix("override ").lstrip("/").partition("@")[0]


def flatten(node: Mapping[str, Any], path: str = "") -> Values:
    """Each value of a nested mapping by its dotted key."""
    flat: Values = {}
    for key, value in node.items():
        flat |= flatten(value, f"{path}{key}.") if isinstance(value, Mapping) else {f"{path}{key}": value}
    return flat


def nest(flat: Mapping[str, Any]) -> Values:
    """The nested mapping of dotted keys. Raises ValueError where a key has a value and keys below it."""
    nested: Values = {}
    for dotted, value in flat.items():
        *parents, key = dotted.split(".")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ValueError(f"{dotted} lies below {parent}, which has a value")
        if isinstance(node.get(key), dict):
            raise ValueError(f"{dotted} has a value and keys below it")
        node[key] = value
    return nested
