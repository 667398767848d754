"""The strict command line: an unknown key or choice, or bad input, is one line that says what would be right.

`launch` runs a `@hydra.main` function and turns expected errors into that line; `check_keys` compares a
composed config, its files included, with what the program takes; `compose_reference` makes the config to
compare with.
"""

import argparse
import errno
import inspect
import operator
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, NoReturn, Union, get_args, get_origin
from unittest.mock import patch

import hydra._internal.hydra
import hydra._internal.utils
from hydra import compose
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import GrammarParseError, MissingMandatoryValue, OmegaConfBaseException

# What Hydra itself reads in a node with a target, beside the target's arguments.
INSTRUCTIONS = {"_target_", "_partial_", "_recursive_", "_convert_", "_args_"}
TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "null"}
LAUNCHERS = ("joblib", "submitit_local", "submitit_slurm")  # that plugins bring
REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check its permissions or choose another folder",
    errno.ENOSPC: "free some space on that disk or write elsewhere with run_dir=FOLDER",
}


def compose_reference() -> DictConfig:
    """The running job's config as its group choices alone make it: no experiment, sweep or other override."""
    job = HydraConfig.get()
    name, overrides = job.job.config_name, list(job.overrides.hydra)
    loader = GlobalHydra.instance().config_loader()
    own = loader.compute_defaults_list(name, overrides, RunMode.MULTIRUN).overrides.known_choices
    for group, choice in job.runtime.choices.items():
        if choice is not None and group not in ("experiment", "sweeps") and not group.startswith("hydra/"):
            overrides.append(f"{group}={choice}" if group in own else f"+{group}={choice}")
    return compose(name, overrides)


def check_keys(
    cfg: DictConfig, reference: DictConfig, supplied: Mapping[str, Collection[str]] | None = None
) -> None:
    """Raise ValueError for a key of `cfg` that nothing takes, a value of the wrong type or an absent target.

    A node with `_target_` takes the parameters of that callable, any other node the keys that `reference` has
    at the same path. A mapping given as an argument, or one that is empty in `reference`, may hold any keys.
    `supplied`: path of a node -> arguments that the program itself gives the target, so that no key may set
    them; required arguments of a `_partial_` that `reference` leaves out count as such without being named.
    """
    choices = HydraConfig.get().runtime.choices if HydraConfig.initialized() else {}
    for key, accepted in _unknown_keys(cfg, reference, supplied or {}):
        where = " (from a config file or the command line)"
        raise ValueError(_describe_key(key, accepted, reference, choices, where))
    _check_values(cfg, reference)


def _unknown_keys(
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
        accepted, free = _arguments(node, expected, path, supplied.get(path, ())), True
    elif isinstance(expected, DictConfig):
        accepted = {str(key) for key in expected} or None
        free = accepted is None
    elif not free or expected is not None:
        accepted = set()
    if accepted is not None:
        yield from ((_join(path, key), accepted) for key in node if str(key) not in accepted)
    for key, value in _children(node):
        where, other = _join(path, key), others.get(key)
        if isinstance(value, DictConfig | ListConfig):
            yield from _unknown_keys(value, other, supplied, where, free)
        elif isinstance(other, DictConfig) and value is not None and not free:
            raise ValueError(
                f"{where!r} takes keys ({_list(other)}), not the value {value!r}; if that is a choice, give"
                f" {where}={value} on the command line or 'override /{where}: {value}' in a file's defaults"
            )


def _arguments(node: DictConfig, expected: Any, path: str, supplied: Collection[str]) -> set[str] | None:
    """The keys that a node with a target may hold; None where the target takes any."""
    try:
        parameters = inspect.signature(pkgutil.resolve_name(str(node["_target_"]))).parameters.values()
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"cannot use {_join(path, '_target_')} {node['_target_']!r}: {error}") from error
    except ValueError:  # a builtin that does not tell its signature
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    kept = isinstance(expected, DictConfig) and expected.get("_target_") == node["_target_"]
    completed = kept and node.get("_partial_", False)
    return INSTRUCTIONS | {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in supplied
        and (parameter.default is not parameter.empty or not completed or parameter.name in expected)
    }


def _check_values(node: DictConfig, reference: DictConfig) -> None:
    """Raise ValueError for a value that is not of the type that its target names.

    The keys at the top have no target: where `reference` holds a number or a truth value, that type counts.
    """
    types = {key: type(value) for key, value in _children(reference) if isinstance(value, int | float)}
    for key, value in _children(node):
        _check_value(str(key), value, types.get(key, Any))
        if isinstance(value, DictConfig) and "_target_" in value:
            target = pkgutil.resolve_name(str(value["_target_"]))
            try:
                parameters = inspect.signature(target, eval_str=True).parameters
            except (NameError, ValueError):  # a name that only a type checker sees, or a builtin
                continue
            for argument, given in _children(value):
                if argument in parameters:
                    _check_value(_join(key, argument), given, parameters[str(argument)].annotation)


def _check_value(key: str, value: Any, hint: Any) -> None:
    """Raise ValueError unless `value` is what `hint` says; a hint beyond plain values allows everything."""
    types = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    accepted = type(value) in types or (type(value) is int and float in types)
    if not accepted and set(types) <= TYPES.keys():
        given = "null" if value is None else repr(value)
        raise ValueError(f"{key} must be {' or '.join(TYPES[known] for known in types)}, got {given}")


def _children(node: DictConfig | ListConfig) -> Iterator[tuple[Any, Any]]:
    """Keys and values, without those that are missing or interpolated."""
    for key in range(len(node)) if isinstance(node, ListConfig) else list(node):
        if not OmegaConf.is_missing(node, key) and not OmegaConf.is_interpolation(node, key):
            yield key, node[key]


def _paths(node: DictConfig, path: str = "") -> Iterator[str]:
    for key, value in _children(node):
        yield (where := _join(path, key))
        if isinstance(value, DictConfig) and where != "hydra":
            yield from _paths(value, where)


def _describe_key(
    key: str, accepted: set[str], reference: DictConfig, choices: Mapping[str, Any], where: str = ""
) -> str:
    """The message for an unknown key: the same name elsewhere, or else the nearest one in its node."""
    parent, _, name = key.rpartition(".")
    namesakes = (path for path in _paths(reference) if path.rpartition(".")[2] == name and path != key)
    nearest = next(namesakes, "")
    if not nearest and (match := _nearest(name, accepted - INSTRUCTIONS)):
        nearest = _join(parent, match)
    owner = f"{parent}={choices[parent]}" if choices.get(parent) else parent or "the top level"
    takes = f"takes: {_list(accepted)}" if accepted else "takes one value, not keys"
    return f"unknown key {key!r}{where}; {_hint(nearest)}{owner} {takes}"


def _nearest(name: str, names: Collection[str]) -> str:
    return next(iter(get_close_matches(name.lower(), names, n=1, cutoff=0.01)), "")


def _hint(nearest: str) -> str:
    return f"did you mean {nearest!r}? " if nearest else ""


def _list(names: Collection[Any]) -> str:
    return ", ".join(sorted(str(name) for name in names if name not in INSTRUCTIONS))


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


class StrictLoader(ConfigLoaderImpl):
    """Hydra's composition of a config, with errors that name the nearest choice or key.

    `node.key=value` also sets an argument of the node's target that its file leaves at the default.
    """

    def load_configuration(
        self, config_name: str | None, overrides: list[str], run_mode: RunMode, *args: Any, **kwargs: Any
    ) -> DictConfig:
        try:
            return super().load_configuration(config_name, overrides, run_mode, *args, **kwargs)
        except MissingConfigException as error:
            if error.missing_cfg_file is None:
                raise
            raise ValueError(self._describe_missing(error.missing_cfg_file, overrides)) from error
        except ConfigCompositionException as error:
            found = re.match(r"Could not (?:override|delete from config\.) '([^'@]+)'", str(error))
            if found is None or self.repository.group_exists(found[1]):
                raise
            key = found[1]
        except ValueError as error:
            for override in OverridesParser.create().parse_overrides(overrides):
                group = override.key_or_group
                if not group:
                    raise OverrideParseException(str(override.input_line), "it has no key") from error
                if self.repository.group_exists(group) and isinstance(override.value(), int | float | None):
                    choice = override.get_value_element_as_str()
                    raise ValueError(self._describe_choice(group, choice)) from error
            raise
        return self._load_argument(key, config_name, overrides, run_mode, *args, **kwargs)

    def _load_argument(
        self,
        key: str,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        *args: Any,
        **kwargs: Any,
    ) -> DictConfig:
        """The config with a key that no file names: an argument of a target, or else ValueError."""
        setting = next(line for line in overrides if line.lstrip("~").partition("=")[0] == key)
        removal = setting.startswith("~")
        others = [line for line in overrides if line != setting]
        if run_mode is RunMode.MULTIRUN and not key.startswith("hydra."):
            # The jobs may choose otherwise; Hydra composes each of them before the first one runs.
            cfg = self.load_configuration(config_name, others, run_mode, *args, **kwargs)
            cfg.hydra.overrides.task.append(setting)
            return cfg
        forced = f"++{key}=null" if removal else f"++{setting}"
        changed = [forced if line == setting else line for line in overrides]
        cfg = self.load_configuration(config_name, changed, run_mode, *args, **kwargs)
        chosen = [line for line in others if "." not in line.partition("=")[0] or line.startswith("hydra.")]
        reference = self.load_configuration(config_name, chosen, run_mode, *args, **kwargs)
        for unknown, accepted in _unknown_keys(cfg, reference, {}):
            raise ValueError(self._describe_setting(unknown, accepted, reference))
        return self.load_configuration(config_name, others, run_mode, *args, **kwargs) if removal else cfg

    def _describe_setting(self, key: str, accepted: set[str], reference: DictConfig) -> str:
        parent, _, name = key.rpartition(".")
        if not parent:
            accepted = (accepted | set(self.list_groups(""))) - {"hydra"}
        if key in accepted:
            return f"{key!r} is a group without keys: write {key}=CHOICE; {self._list_choices(key)}"
        if parent and self.repository.group_exists(parent) and name in self._choices(parent):
            return f"unknown key {key!r}; {_hint(f'{parent}={name}')}{self._list_choices(parent)}"
        return _describe_key(key, accepted, reference, reference.hydra.runtime.choices)

    def _describe_missing(self, missing: str, overrides: list[str]) -> str:
        keys = (re.split("[@=]", line.lstrip("+"))[0] for line in overrides)
        given = max((key for key in keys if missing.startswith(f"{key}/")), key=len, default="")
        group = given or (missing.partition("/")[0] if "/" in missing else "")
        where = "" if given or not group else " (from the defaults list of a config file)"
        return self._describe_choice(group, missing.removeprefix(f"{group}/"), where)

    def _describe_choice(self, group: str, choice: str, where: str = "") -> str:
        if group == "hydra/launcher" and choice in LAUNCHERS:
            return f"{group}={choice} is not installed: pip install -e '.[slurm]'"
        hint = _hint(_nearest(choice, self._choices(group)))
        return f"unknown {group or 'config'} {choice!r}{where}; {hint}{self._list_choices(group)}"

    def _list_choices(self, group: str) -> str:
        return f"{group or 'config'} is one of: {', '.join(self._choices(group))}"

    def _choices(self, group: str) -> list[str]:
        """The files of a group; those in a subfolder are written folder/name."""
        folders = self.list_groups(group) if group else []
        inner = [f"{folder}/{name}" for folder in folders for name in self._choices(f"{group}/{folder}")]
        files = self.get_group_options(group, ObjectType.CONFIG)
        return sorted([*inner, *(name for name in files if not name.startswith("_"))])


def launch(main: Callable[[], None]) -> None:
    """Run a `@hydra.main` function; an expected error becomes one line on stderr and exit code 2, Ctrl-C 130.

    Any other exception is a fault of the program and keeps its traceback; HYDRA_FULL_ERROR=1 keeps every one.
    """
    full_error = os.environ.get("HYDRA_FULL_ERROR") == "1"
    result = vars(JobReturn)["return_value"].getter(_job_result)
    # Hydra has no setting for these: its loader is fixed, and it prints errors itself and exits with code 1.
    with (
        patch.object(hydra._internal.hydra, "ConfigLoaderImpl", StrictLoader),
        patch.object(hydra._internal.utils, "run_and_report", operator.call),
        patch.object(JobReturn, "return_value", result),
        patch.object(sys, "argv", [_quote(word) for word in sys.argv]),
    ):
        try:
            _check_options()
            main()
        except (KeyboardInterrupt, SystemExit) as stop:
            # Lightning answers Ctrl-C during training with sys.exit(1).
            causes = (type(stop), type(stop.__context__))
            if full_error or KeyboardInterrupt not in causes:
                raise
            _exit("interrupted", 130)
        except Exception as error:
            message = _explain(error)
            if full_error or message is None:
                raise
            notes = "; ".join(getattr(error, "__notes__", []))
            _exit(f"{message} ({notes})" if notes else message, 2)


def _quote(word: str) -> str:
    """`key=value` or `key=[value,value]` with quotes around values with a plain `=`, as in the folders of runs."""
    key, _, value = word.partition("=")
    listed = value[:1] == "[" and value[-1:] == "]"
    values = value[1:-1].split(",") if listed else [value]
    quoted = [f"'{v}'" if "=" in v and not set(v) & set("'\"\\()[]{}") else v for v in values]
    if listed:
        return f"{key}=[{','.join(quoted)}]"
    return f"{key}={quoted[0]}" if "=" in word else word


def _exit(message: str, code: int) -> NoReturn:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _check_options() -> None:
    """Raise ValueError for an unknown `--option`, for which Hydra's parser prints its whole usage."""
    parser = hydra._internal.utils.get_args_parser()
    parser.exit_on_error = False
    try:
        unknown = parser.parse_known_args()[1]
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}; --help lists the options") from error
    if unknown:
        rule = "settings are written key=value, options such as -m stand before or after all of them"
        raise ValueError(f"cannot place {unknown[0]!r} on the command line: {rule}; see --help")


def _job_result(job: JobReturn) -> Any:
    """What a job returned; else raise its exception, with a note of where it happened."""
    if job.status is not JobStatus.FAILED:
        return job._return_value
    error, settings = job._return_value, job.hydra_cfg
    if settings is not None and settings.hydra.mode is RunMode.MULTIRUN:
        error.add_note(f"in the job {' '.join(job.overrides or [])}")
    if isinstance(error, OSError) and error.errno and error.filename is None and job.cfg is not None:
        error.add_note(f"the results of this run go below {job.cfg.get('run_dir') or job.working_dir}")
    raise error


def _explain(error: BaseException) -> str | None:
    """What to tell the user; None for an error that is not theirs."""
    text, cause = str(error) or repr(error), error.__cause__
    match error:
        case OverrideParseException():
            reason = error.message.partition("\nSee http")[0].rstrip(" ^\n").rpartition("\n")[2]
            return f"cannot read {error.override!r}: {reason}; write key=value, and quote a value with blanks"
        case InstantiationException() if cause is not None:
            node = re.search(r"full_key: (\S+)", text)
            message = str(cause) if isinstance(cause, TypeError | ImportError) else _explain(cause)
            return f"{node[1]}: {message}" if node and message else message
        case HydraException():
            return f"{error} {cause or ''}"
        case MissingMandatoryValue():
            return f"missing value {error.full_key!r}: give {error.full_key}=..."
        case OmegaConfBaseException(full_key=key) if isinstance(error, ValueError | GrammarParseError):
            return f"{key}: {text.partition('    full_key:')[0]}" if key else text
        case OSError(errno=int(number), strerror=str(reason), filename=path):
            place = f"{path}: " if path is not None else ""
            return f"{place}{reason}; {REMEDIES[number]}" if number in REMEDIES else f"{place}{reason}"
        case ValueError() | OSError():
            return text
    names = {known.__name__ for known in type(error).__mro__}
    return text if names & {"MisconfigurationException", "YAMLError"} else None
