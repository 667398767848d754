"""What a config may hold: an unknown key, a value of the wrong type or a class that no file chose is an error."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from hornn.command_line.hydra_patches import known_choices
from hornn.command_line.targets import parameters_of, resolve_target
from hornn.places import CONF

# What is read in a node with a target, beside the target's arguments.
INSTRUCTIONS = {
    "_target_",
    "_partial_",
    "_recursive_",
    "_convert_",
    "_args_",
    "_counted_",  # ours: the model is counted, not trained
    "_text_",  # ours: which keys of a corpus are files of text
    "_watches_",  # ours: a callback changes no number
}
GIVEN = {  # arguments that the program gives a target, or lets nobody give, by path
    "network": ("head", "input_width"),
    "head": ("bias",),
    "model": ("eos_id",),
    "trainer": ("callbacks", "logger", "plugins", "default_root_dir", "enable_checkpointing", "barebones"),
}
SIZE = "hidden_size"  # required by a cell, and never given by the program
OPEN = ("logger", "callbacks")  # groups of which several files, and nodes of a user's own, can be chosen
LOGGER = ("run_dir", "identity", "resume")  # what the function of a logger is given
BY_FILE = ("model", "head", "network", "data", "optimizer", "schedule")  # groups whose files choose a class
TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "null"}


def compose_reference(job: Any = None) -> DictConfig:
    """A job's config as its group choices alone make it: no experiment, sweep or other override.

    job: its `hydra` node, None for the running job's.
    """
    job = job or HydraConfig.get()
    name, overrides = job.job.config_name, list(job.overrides.hydra)
    loader = GlobalHydra.instance().config_loader()
    own = known_choices(loader, name, overrides)
    for group, choice in job.runtime.choices.items():
        if choice is not None and group not in ("experiment", "sweeps") and not group.startswith("hydra/"):
            overrides.append(f"{group}={choice}" if group in own else f"+{group}={choice}")
    return compose(name, overrides)


def check_config_name(own: str) -> None:
    """Raise ValueError where --config-name gives this command the file of another one; a user's own file may be."""
    name = HydraConfig.get().job.config_name
    if name != own and (CONF / f"{name}.yaml").is_file():
        raise ValueError(
            f"--config-name={name} is the file of another command: leave it out, or run that command"
        )


def check_keys(
    cfg: DictConfig,
    reference: DictConfig,
    supplied: Mapping[str, Collection[str]] | None = None,
    choices: Mapping[str, Any] | None = None,
) -> None:
    """Raise ValueError for a key of `cfg` that nothing takes or that is left out, a value of the wrong type, an absent
    target or a class that the choice of a file did not bring.

    A node with `_target_` takes the parameters of that callable, any other node the keys that `reference` has
    at the same path. A mapping given as an argument, or one that is empty in `reference`, may hold any keys.
    `supplied`: path of a node -> arguments that the program itself gives the target, so that no key may set
    them; required arguments of a `_partial_` that `reference` leaves out count as supplied without being named, except
    `SIZE`.
    `choices`: the file of each group, None for the running job's.
    """
    check_classes(cfg, reference)
    for key in left_out(cfg, reference):
        raise ValueError(f"{key!r} cannot be left out: drop ~{key}, or what empties it")
    if choices is None:
        choices = HydraConfig.get().runtime.choices if HydraConfig.initialized() else {}
    if unknown := list(unknown_keys(cfg, reference, supplied or {})):
        key, accepted = unknown[0]
        parent, _, name = key.rpartition(".")
        node = OmegaConf.select(reference, parent) if parent else reference
        in_its_file = isinstance(node, DictConfig) and name in node
        if not in_its_file and (remedy := taken_away([each for each, _ in unknown], choices)):
            raise ValueError(f"unknown key {key!r}, which an experiment or a sweep sets; {remedy}")
        where = " (from a config file or the command line)"
        raise ValueError(describe_key(key, accepted, reference, choices, where))
    _check_values(cfg, reference)


def taken_away(keys: Sequence[str], choices: Mapping[str, Any]) -> str:
    """What lets a choice that was typed stand where another file sets keys that it does not take; else nothing."""
    group = keys[0].rpartition(".")[0]
    typed = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    names = {word.lstrip("+~").partition("=")[0] for word in typed}
    if group not in names or not choices.get(group) or names & {*keys}:
        return ""
    words = " ".join(f"~{key}" for key in keys if key.rpartition(".")[0] == group)
    return f"{group}={choices[group]} does not take it: add {words}"


def left_out(cfg: DictConfig, reference: DictConfig) -> Iterator[str]:
    """The keys that `cfg` cannot do without and does not have: keys at the top, and arguments without a default."""
    for key, expected in _children(reference):
        if key not in list(cfg):
            yield str(key)
        elif has_target(expected) and isinstance(node := cfg[key], DictConfig):
            parameters = parameters_of(expected["_target_"], _join(str(key), "_target_")) or {}
            for name in map(str, expected):
                required = name in parameters and parameters[name].default is inspect.Parameter.empty
                if required and name not in list(node):
                    yield _join(str(key), name)


def check_classes(cfg: DictConfig, reference: DictConfig) -> None:
    """Raise ValueError where another class, or another way to build it, is set than the choice of a file brings."""
    for group in BY_FILE:
        node, chosen = cfg.get(group), reference.get(group)
        if not isinstance(node, DictConfig):
            continue
        brought = chosen if isinstance(chosen, DictConfig) else {}
        for key in sorted(INSTRUCTIONS):
            if node.get(key) != brought.get(key):
                raise ValueError(
                    f"{group}.{key} is set by the choice of {group}:"
                    f" write conf/{group}/NAME.yaml and give {group}=NAME"
                )


def unknown_keys(
    node: DictConfig | ListConfig,
    expected: Any,
    supplied: Mapping[str, Collection[str]],
    path: str = "",
    free: bool = False,
) -> Iterator[tuple[str, set[str]]]:
    """Each unknown key with the names that its node takes; `free`: in an argument, where any key may be."""
    accepted: set[str] | None = None
    others = dict(_children(expected)) if isinstance(expected, DictConfig) else {}
    if isinstance(node, ListConfig):
        free = True
    elif "_target_" in node:
        given = LOGGER if path.startswith("logger.") else supplied.get(path, ())
        accepted, free = _arguments(node, expected, path, given), True
    elif isinstance(expected, DictConfig):
        accepted = {str(key) for key in expected} or None
        free = accepted is None
        if accepted is not None and path in OPEN:
            accepted |= {str(key) for key, value in _children(node) if has_target(value)}
    elif not free or expected is not None:
        accepted = set()
    if accepted is not None:
        yield from ((_join(path, key), accepted) for key in node if str(key) not in accepted)
    for key, value in _children(node):
        where, other = _join(path, key), others.get(key)
        if isinstance(value, DictConfig | ListConfig):
            yield from unknown_keys(value, other, supplied, where, free)
        elif isinstance(other, DictConfig) and value is not None and not free:
            remedy = f"give {where}=null for none, or {where}.KEY=VALUE"
            if is_group(where):
                remedy = (
                    f"if that is a choice, give {where}={value} on the command line or 'override /{where}: {value}' in "
                    "a file's defaults"
                )
            raise ValueError(f"{where!r} takes keys ({_list(other)}), not the value {value!r}; {remedy}")


def is_group(key: str) -> bool:
    """Whether files of the running program's config can be chosen by this key."""
    hydra = GlobalHydra.instance()
    return hydra.is_initialized() and key in hydra.config_loader().list_groups("")


def has_target(value: Any) -> bool:
    return isinstance(value, DictConfig) and "_target_" in value


def _arguments(node: DictConfig, expected: Any, path: str, supplied: Collection[str]) -> set[str] | None:
    """The keys that a node with a target may hold; None where the target takes any."""
    found = parameters_of(node["_target_"], _join(path, "_target_"))
    if found is None or any(each.kind is each.VAR_KEYWORD for each in found.values()):
        return None
    kept = isinstance(expected, DictConfig) and expected.get("_target_") == node["_target_"]
    completed = kept and node.get("_partial_", False)
    return INSTRUCTIONS | {
        parameter.name
        for parameter in found.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in supplied
        and (
            parameter.default is not parameter.empty
            or not completed
            or parameter.name in expected
            or parameter.name == SIZE
        )
    }


def _check_values(node: DictConfig, reference: DictConfig) -> None:
    """Raise ValueError for a value that is not of the type that its target names.

    The keys at the top have no target: where `reference` holds a number or a truth value, that type counts.
    """
    types = {key: type(value) for key, value in _children(reference) if isinstance(value, int | float)}
    for key, value in _values(node):
        _check_value(node, key, value, types.get(key, Any))
        if key in OPEN and isinstance(value, DictConfig):
            for _, entry in _values(value):
                _check_arguments(entry)
        _check_arguments(value)


def _check_arguments(node: Any) -> None:
    """Raise ValueError for an argument of a node with a target that is not of the type which the target names."""
    if not has_target(node):
        return
    target = resolve_target(node["_target_"], node._get_full_key("_target_"))
    try:
        parameters = inspect.signature(target, eval_str=True).parameters
    except Exception:  # of a builtin, or of what only a type checker sees
        return
    for argument, given in _values(node):
        if argument in parameters:
            _check_value(node, argument, given, parameters[str(argument)].annotation)


def _check_value(node: DictConfig, key: Any, value: Any, hint: Any) -> None:
    """Raise ValueError unless `value`, which a key of `node` holds, is what `hint` says.

    A hint beyond plain values allows everything.
    """
    types = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    accepted = type(value) in types or (type(value) is int and float in types)
    if not accepted and set(types) <= TYPES.keys():
        given = "null" if value is None else repr(value)
        allowed = " or ".join(TYPES[known] for known in types)
        written = str(node._get_node(key)._value())  # type: ignore[union-attr]
        full = node._get_full_key(key)
        remedy = (
            f"""; the environment gives text: write '{full}="${{oc.decode:{written}}}"', with all quotes"""
            if "${oc.env:" in written
            else ""
        )
        raise ValueError(f"{full} must be {allowed}, got {given}{remedy}")


def _children(node: DictConfig | ListConfig) -> Iterator[tuple[Any, Any]]:
    """Keys with their values, without missing and interpolated values."""
    for key in range(len(node)) if isinstance(node, ListConfig) else list(node):
        if not OmegaConf.is_missing(node, key) and not OmegaConf.is_interpolation(node, key):
            yield key, node[key]


def _values(node: DictConfig) -> Iterator[tuple[Any, Any]]:
    """Keys with their values, interpolated values included where they can be resolved."""
    for key in node:
        if not OmegaConf.is_missing(node, key):
            with suppress(InterpolationResolutionError):  # whoever needs the value says so
                yield key, node[key]


def _paths(node: DictConfig, path: str = "") -> Iterator[str]:
    for key, value in _children(node):
        yield (where := _join(path, key))
        if isinstance(value, DictConfig) and where != "hydra":
            yield from _paths(value, where)


def describe_key(
    key: str, accepted: set[str], reference: DictConfig, choices: Mapping[str, Any], where: str = ""
) -> str:
    """The message for an unknown key: the same name elsewhere, or else the nearest one in its node."""
    parent, _, name = key.rpartition(".")
    namesakes = (path for path in _paths(reference) if path.rpartition(".")[2] == name and path != key)
    nearest = next(namesakes, "")
    if not nearest and (match := nearest_of(name, accepted - INSTRUCTIONS)):
        nearest = _join(parent, match)
    owner = f"{parent}={choices[parent]}" if choices.get(parent) else parent or "the top level"
    names = _list(accepted)
    takes = f"takes: {names}" if names else "takes no keys" if accepted else "takes one value, not keys"
    return f"unknown key {key!r}{where}; {did_you_mean(nearest)}{owner} {takes}"


def nearest_of(name: str, names: Collection[str]) -> str:
    return next(iter(get_close_matches(name.lower(), names, n=1, cutoff=0.5)), "")


def did_you_mean(nearest: str) -> str:
    return f"did you mean {nearest!r}? " if nearest else ""


def _list(names: Collection[Any]) -> str:
    return ", ".join(sorted(str(name) for name in names if name not in INSTRUCTIONS))


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)
