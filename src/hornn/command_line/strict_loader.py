"""Hydra's composition of a config, with errors that name the nearest choice or key."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import ConfigCompositionException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig

from hornn.command_line.hydra_patches import Loader
from hornn.command_line.strict_keys import check_classes, describe_key, did_you_mean, nearest_of, unknown_keys
from hornn.places import require_one

LAUNCHERS = ("joblib", "submitit_local", "submitit_slurm")  # that plugins bring
AS_A_PATH = re.compile(r"(^|/)\.{0,2}(/|$)|\.ya?ml$")  # of a choice: Hydra reads the same file by other names


class StrictLoader(Loader):
    """Hydra's composition of a config, with errors that name the nearest choice or key.

    `node.key=value` also sets an argument of the node's target that its file leaves at the default.
    """

    def load_configuration(
        self, config_name: str | None, overrides: list[str], run_mode: RunMode, *args: Any, **kwargs: Any
    ) -> DictConfig:
        # In the other commands `sweep` names a sweep.
        if config_name == "config":
            self._require_one_table(overrides)
        try:
            cfg = super().load_configuration(config_name, overrides, run_mode, *args, **kwargs)
            self._check_names(cfg.hydra.runtime.choices)
            if not isinstance(verbose := cfg.hydra.verbose, bool | str | ListConfig):
                raise ValueError(f"hydra.verbose must be true, false or names of loggers, got {verbose!r}")
            return cfg
        except MissingConfigException as error:
            if error.missing_cfg_file is None:
                raise
            raise ValueError(self._describe_missing(error.missing_cfg_file, overrides)) from error
        except ConfigCompositionException as error:
            key = self.unknown_key(error)
            if key is None:
                if found := self.unknown_group(error):
                    file, group = found
                    names = self.list_groups("")
                    hint = did_you_mean(nearest_of(group, names))
                    raise ValueError(
                        f"{file}.yaml overrides {group!r} in its defaults list, which nothing chooses before it; {hint}"
                        f"the groups are: {', '.join(names)}"
                    ) from error
                raise
            if self.has_group(key):
                others = [line for line in overrides if line.lstrip("~").partition("=")[0] != key]
                reference = super().load_configuration(config_name, others, run_mode, *args, **kwargs)
                if key in reference.hydra.runtime.choices or len(others) == len(overrides):
                    raise
                raise ValueError(self._describe_setting(key, set(map(str, reference)), reference)) from error
        except ValueError as error:
            for override in OverridesParser.create().parse_overrides(overrides):
                group = override.key_or_group
                if not group:
                    raise OverrideParseException(str(override.input_line), "it has no key") from error
                if self.has_group(group) and isinstance(override.value(), int | float | None):
                    choice = override.get_value_element_as_str()
                    raise ValueError(self._describe_choice(group, choice)) from error
            raise
        return self._load_argument(key, config_name, overrides, run_mode, *args, **kwargs)

    def _require_one_table(self, overrides: list[str]) -> None:
        """Raise ValueError for several sweep files, and for `sweep=NAME`, which is mistyped for `sweeps=NAME`."""
        chosen = [word for word in overrides if re.match(r"\+*sweeps?=", word)]
        for override in OverridesParser.create(config_loader=self).parse_overrides(chosen):
            value: Any = override.value()
            if override.is_discrete_sweep():
                value = list(override.sweep_string_iterator())
            if isinstance(value, list) and value:
                commands = ", then ".join(f"python src/train.py -m sweeps={name}" for name in value)
                raise ValueError(f"{override.input_line}: a command takes one table; give {commands}")
            if override.key_or_group == "sweep" and not isinstance(value, dict):
                word = override.get_value_element_as_str()
                raise ValueError(
                    f"sweep takes keys, such as sweep.seeds=[1,2], got {word!r}; did you mean sweeps={word}?"
                )

    def _check_names(self, choices: Mapping[str, Any]) -> None:
        """Raise ValueError where the file of a choice has the name of another one, in a folder of the search path; for
        a file that is named as a path, which would name the run otherwise; for a group in another place, which nothing
        reads.
        """
        paths = [element.path.removeprefix("file://") for element in self.get_search_path().get_path()]
        folders = [Path(path) for path in paths if "://" not in path]
        for group, choice in choices.items():
            if "@" in group:
                own = group.partition("@")[0]
                raise ValueError(f"{group}={choice}: a group has one place here, give {own}={choice}")
            for word in [choice] if isinstance(choice, str) else choice or ():
                if AS_A_PATH.search(word):
                    raise ValueError(self._describe_choice(group, word))
                if len(folders) > 1:
                    require_one(f"{group}/{word}", folders)

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
        check_classes(cfg, reference)
        for unknown, accepted in unknown_keys(cfg, reference, {}):
            if f"~{unknown}" in others:  # removed, and yet set in part
                raise ValueError(f"{unknown!r} cannot be left out: drop ~{unknown}")
            raise ValueError(self._describe_setting(unknown, accepted, reference))
        return self.load_configuration(config_name, others, run_mode, *args, **kwargs) if removal else cfg

    def _describe_setting(self, key: str, accepted: set[str], reference: DictConfig) -> str:
        parent, _, name = key.rpartition(".")
        chosen: set[str] = set()
        if not parent:
            # the groups of this command
            chosen = set(self.list_groups("")) & reference.hydra.runtime.choices.keys()
            accepted = (accepted | chosen) - {"hydra"}
        if key in chosen:
            return f"{key!r} is a group without keys: write {key}=CHOICE; {self._list_choices(key)}"
        if isinstance(node := reference.get(key), DictConfig):
            return f"{key!r} is no choice of this command, and takes keys: {', '.join(map(str, node))}"
        if parent and self.has_group(parent) and name in self._choices(parent):
            return f"unknown key {key!r}; {did_you_mean(f'{parent}={name}')}{self._list_choices(parent)}"
        said = describe_key(key, accepted, reference, reference.hydra.runtime.choices)
        files = self._choices(parent) if parent and self.has_group(parent) else []
        takers = [choice for choice in files if name in self.keys_of(f"{parent}/{choice}")]
        if takers:
            return f"{said}; {name} is a key of {parent}={', '.join(takers)}"
        commands = [each for each in self._choices("") if not parent and key in self.keys_of(each)]
        told = ", ".join(f"{'train' if each == 'config' else each}.py" for each in commands)
        return f"{said}; {key} is a key of {told}" if told else said

    def _describe_missing(self, missing: str, overrides: list[str]) -> str:
        keys = (re.split("[@=]", line.lstrip("+"))[0] for line in overrides)
        given = max((key for key in keys if missing.startswith(f"{key}/")), key=len, default="")
        depth = 2 if missing.startswith("hydra/") else 1  # of the folder that is the group
        group = given or "/".join(missing.split("/")[:-1][:depth])
        where = "" if given or not group else " (from the defaults list of a config file)"
        return self._describe_choice(group, missing.removeprefix(f"{group}/"), where)

    def _describe_choice(self, group: str, choice: str, where: str = "") -> str:
        if group == "hydra/launcher" and choice in LAUNCHERS:
            return f"{group}={choice} is not installed: pip install -e '.[slurm]'"
        hint = did_you_mean(nearest_of(choice, self._choices(group)))
        has_own = any(place.provider == "command-line" for place in self.get_search_path().get_path())
        may_be_own = not (hint or has_own or group.startswith("hydra")) and bool(group)
        own = "; a file of your own needs --config-dir=FOLDER" if may_be_own else ""
        return f"unknown {group or 'config'} {choice!r}{where}; {hint}{self._list_choices(group)}{own}"

    def _list_choices(self, group: str) -> str:
        return f"{group or 'config'} is one of: {', '.join(self._choices(group))}"

    def _choices(self, group: str) -> list[str]:
        """The files of a group; those in a subfolder are written folder/name.

        The subfolder of sweeps holds files for W&B's agents.
        """
        folders = self.list_groups(group) if group not in ("", "sweeps") else []
        inner = [f"{folder}/{name}" for folder in folders for name in self._choices(f"{group}/{folder}")]
        files = self.get_group_options(group, ObjectType.CONFIG)
        return sorted([*inner, *(name for name in files if not name.startswith("_"))])
