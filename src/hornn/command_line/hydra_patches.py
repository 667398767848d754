"""Each patch of Hydra, and each use of its private names: a new release of Hydra is held against this file alone."""

import argparse
import operator
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hydra._internal.hydra
import hydra._internal.utils
import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.defaults_list import Overrides
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_loader import ConfigLoader
from hydra.core.default_element import GroupDefault
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import ConfigCompositionException
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from hornn.command_line.help_text import fit
from hornn.places import CONF, as_typed

AT_TOP = ("sweeps", "experiment")  # groups whose files set keys of the whole config

_is_hydras_own = Plugins.is_in_toplevel_plugins_module


class Loader(ConfigLoaderImpl):
    """Hydra's composition of a config, with what its public face does not tell."""

    composed: DictConfig | None = None  # by `get_mode`, for the run that follows

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # by their overrides, for `hornn.sweep.expand.compose_job`
        self.jobs: dict[tuple[str, ...], tuple[DictConfig, DictConfig]] = {}

    def load_configuration(
        self, config_name: str | None, overrides: list[str], run_mode: RunMode, *args: Any, **kwargs: Any
    ) -> DictConfig:
        cfg, self.composed = self.composed, None
        if cfg is None or run_mode is not RunMode.RUN:
            return super().load_configuration(config_name, overrides, run_mode, *args, **kwargs)
        parsed = OverridesParser.create().parse_overrides(overrides)
        self.validate_sweep_overrides_legal(parsed, run_mode, from_shell=True)
        if cfg.hydra.mode is None:  # Hydra has added it to the overrides
            cfg.hydra.overrides.hydra.append("hydra.mode=RUN")
            cfg.hydra.mode = run_mode
        return cfg

    def _process_config_searchpath(self, config_name: Any, parsed_overrides: Any, repo: Any) -> None:
        """Hydra goes on without a folder that is not there, with a warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            super()._process_config_searchpath(config_name, parsed_overrides, repo)
        for source in repo.get_sources():
            if source.provider.startswith("hydra.searchpath") and not source.available():
                raise ValueError(
                    f"hydra.searchpath names {source.scheme()}://{source.path}, which is not there: "
                    "give file:///FOLDER or pkg://PACKAGE"
                )

    def has_group(self, name: str) -> bool:
        return self.repository.group_exists(name)

    def keys_of(self, path: str) -> Collection[str]:
        """The keys that the file of a choice names; none where it cannot be read."""
        try:
            found = self.repository.load_config(path)
        except Exception:  # whoever chooses the file says what is wrong with it
            return ()
        return list(map(str, found.config)) if found else ()

    @staticmethod
    def unknown_key(error: ConfigCompositionException) -> str | None:
        """The key that an override names and no file has, if the error is of that kind."""
        found = re.match(r"Could not (?:override|delete from config\.) '([^'@]+)'", str(error))
        return found and found[1]

    @staticmethod
    def unknown_group(error: ConfigCompositionException) -> tuple[str, str] | None:
        """The file whose defaults list overrides a group that nothing chooses, and the group; None: another error."""
        found = re.match(r"In '([^']+)': Could not override '([^'@]+)'", str(error))
        return (found[1], found[2]) if found else None


@contextmanager
def patched(loader: type[Loader], annotate: Callable[[JobReturn, BaseException], None]) -> Iterator[None]:
    """Hydra composes by `loader` and lets errors pass, a job's after `annotate`, instead of printing them.

    Hydra has no setting for these: its loader is fixed, and it prints errors itself and exits with code 1. Of a config
    file that holds no keys and values it says something of another file, or nothing.
    """

    def result(job: JobReturn) -> Any:
        value = job._return_value
        if job.status is JobStatus.FAILED:
            annotate(job, value)
            raise value
        return value

    Plugins.instance()  # knows what reads files, by a class that no import gives
    files = SourcesRegistry.instance().resolve("file")
    load_config = files.load_config
    read: dict[Path, ConfigResult] = {}  # a command composes several times, and Hydra reads each file anew

    def load(source: ConfigSource, config_path: str) -> ConfigResult:
        path = Path(source.path, source._normalize_file_name(config_path))
        if path not in read:
            found = keys_and_values(path, lambda: load_config(source, config_path))
            require_global(path, config_path, found)
            read[path] = found  # once it is right: `get_mode` asks first, and passes errors over
        return deepcopy(read[path])

    with (
        patch.object(hydra._internal.hydra, "ConfigLoaderImpl", loader),
        patch.object(hydra._internal.hydra.Hydra, "get_mode", get_mode),
        patch.object(hydra._internal.hydra.Hydra, "get_help", get_help),
        patch.object(hydra._internal.utils, "run_and_report", operator.call),
        patch.object(files, "load_config", load),
        patch.object(Overrides, "add_override", add_override),
        patch.object(JobReturn, "return_value", vars(JobReturn)["return_value"].getter(result)),
    ):
        yield


def get_mode(hydra: Any, config_name: str | None, overrides: list[str]) -> RunMode | None:
    """What `hydra.mode` says, if anything. The config that says it is kept for the run: Hydra composes it twice."""
    loader: Loader = hydra.config_loader
    try:
        cfg = loader.load_configuration(config_name, overrides, RunMode.RUN, validate_sweep_overrides=False)
    except Exception:  # as Hydra does: whoever needs the config says what is wrong with it
        return None
    mode: RunMode | None = cfg.hydra.mode
    if mode is not RunMode.MULTIRUN:
        loader.composed = cfg
    return mode


_get_help = hydra._internal.hydra.Hydra.get_help


def get_help(hydra: Any, help_cfg: DictConfig, cfg: DictConfig, *args: Any, **kwargs: Any) -> str:
    """The help of a command, with commands as they are typed here, as wide as the terminal.

    Hydra writes the values of all keys for `$CONFIG`; in their place stand the lines of the command's own file between
    its defaults list and what it says to Hydra, with the comments that explain them.
    """
    text: str = _get_help(hydra, help_cfg, cfg, *args, **kwargs)
    if not HydraConfig.initialized():  # of --hydra-help
        return text
    file = CONF / f"{HydraConfig.get().job.config_name}.yaml"
    if file.is_file():  # --config-name may name a file of the user's
        keys = file.read_text(encoding="utf-8").partition("\nhydra:\n")[0].partition("\n\n")[2]
        text = text.replace(OmegaConf.to_yaml(cfg), keys)
    return fit(as_typed(text))


_add_override = Overrides.add_override


def add_override(overrides: Overrides, file: str, default: GroupDefault) -> None:
    """Let `override /hydra/launcher: joblib` in a file of a group replace what the file at the top says.

    Of several files the first one read counts, and Hydra reads the one at the top first. So an experiment could choose
    neither a launcher nor a sweeper, and Hydra said nothing of it (its issue 2946).
    """
    key = default.get_override_key()
    known = overrides.override_metadata.get(key)
    at_top = known is not None and "/" not in (known.containing_config_path or "/")
    if key.startswith("hydra/") and at_top and "/" in file:
        del overrides.override_choices[key]
    _add_override(overrides, file, default)


def keys_and_values(path: Path, load: Callable[[], ConfigResult]) -> ConfigResult:
    """What `load` reads from a config file. Raises ValueError, which names the file, where that is anything else."""
    try:
        found = load()
        content: Any = found.config
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(
            f"{path} is not UTF-8: byte {byte:#04x} at offset {error.start:,}: convert it to UTF-8"
        ) from error
    except OSError as error:
        if "Invalid loaded object type" not in str(error):
            raise
        content = None
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())  # by what YAML made a value with
        raise ValueError(
            f"{path} has a value that cannot be read ({said}): write it without a tag (!)"
        ) from error
    if isinstance(content, DictConfig) and len(content) < 2:
        # of nothing and of a text alone Hydra makes keys, too
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict | DictConfig):
        raise ValueError(f"{path} holds no keys and values: write lines KEY: VALUE")
    return found


def require_global(path: Path, config_path: str, found: ConfigResult) -> None:
    """Raise ValueError for a file of `sweeps` or `experiment` that lacks the line `# @package _global_`.

    Without that line Hydra puts the file's keys below the name of the group, where nothing reads them.
    """
    if config_path.strip("/").split("/")[0] in AT_TOP and found.header.get("package") != "_global_":
        raise ValueError(f"{path} does not begin with the line '# @package _global_': write it at the top")


def options_parser() -> argparse.ArgumentParser:
    """What reads the `--options` of a command line; it raises ArgumentError instead of ending the program."""
    parser = hydra._internal.utils.get_args_parser()
    parser.exit_on_error = False
    return parser


def known_choices(loader: ConfigLoader, config: str | None, overrides: list[str]) -> Collection[str]:
    """The groups in which the defaults lists of this config choose a file."""
    groups: Collection[str] = loader.compute_defaults_list(
        config, overrides, RunMode.MULTIRUN
    ).overrides.known_choices
    return groups


def admit_plugins(package: str) -> None:
    """Let plugins of `package` be chosen in a config; by default Hydra takes plugins of its own packages only."""

    def is_plugin(name: str) -> bool:
        return name.startswith(f"{package}.") or _is_hydras_own(name)

    setattr(Plugins, "is_in_toplevel_plugins_module", staticmethod(is_plugin))  # noqa: B010
