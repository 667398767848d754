"""A config that Hydra has composed, as plain values."""

import re
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

VARIABLE = re.compile(r"oc\.env:(\w+)")


def as_dict(cfg: DictConfig) -> dict[str, Any]:
    """A config as resolved dicts, lists and numbers.

    Raises ValueError where environment variables that values are taken from are not set.
    """
    try:
        config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except InterpolationResolutionError as error:
        if unset := dict(values_without_variable(cfg)):
            needs = ", ".join(f"{key} needs {' or '.join(names)}" for key, names in unset.items())
            instead = " ".join(f"{key}=VALUE" for key in unset)
            raise ValueError(f"{needs} in the environment: set that, or give {instead}") from error
        raise
    assert isinstance(config, dict)
    return config  # type: ignore[return-value]


def values_without_variable(node: DictConfig) -> Iterator[tuple[str, list[str]]]:
    """Each key whose value comes from environment variables that are not set, with their names."""
    plain: Any = OmegaConf.to_container(node, resolve=False)
    for key, written in plain.items():
        if isinstance(written, str) and (names := VARIABLE.findall(written)):
            try:
                node[key]
            except InterpolationResolutionError:
                yield node._get_full_key(key), names
        elif isinstance(written, dict) and not OmegaConf.is_missing(node, key):
            yield from values_without_variable(node[key])
