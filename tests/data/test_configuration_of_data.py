import inspect
from pathlib import Path

import pytest
from hydra.utils import get_method
from omegaconf import OmegaConf

CONF = Path(__file__).parents[2] / "conf" / "data"


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_keys_and_values_are_the_signature(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORNN_DATA", "/corpora")
    monkeypatch.setenv("HORNN_CACHE", "/tokens")
    config = OmegaConf.load(path)
    parameters = inspect.signature(get_method(config.pop("_target_"))).parameters
    for instruction in ("_text_", "defaults"):
        config.pop(instruction, None)
    assert set(config) == set(parameters)
    assert config.root == "/corpora"
    assert config.cache_dir == "/tokens"
    for key, parameter in parameters.items():
        if parameter.default is not parameter.empty:
            assert config[key] == parameter.default, key
        else:
            assert key in ("root", "cache_dir", "set") or OmegaConf.is_missing(config, key)


def test_folders_without_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HORNN_DATA", raising=False)
    monkeypatch.delenv("HORNN_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    config = OmegaConf.load(CONF / "ptb.yaml")
    assert config.root == "/home/me/.cache/hornn/data"
    assert config.cache_dir == "/home/me/.cache/hornn/tokens"
