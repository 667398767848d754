"""A config that Hydra has composed, as plain values."""

from typing import Any

from omegaconf import DictConfig, OmegaConf


def as_dict(cfg: DictConfig) -> dict[str, Any]:
    """A config as resolved dicts, lists and numbers."""
    config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    assert isinstance(config, dict)
    return config  # type: ignore[return-value]
