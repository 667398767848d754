"""The sweeps for agents of Weights & Biases."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from omegaconf import OmegaConf

from outcome import Command
from run.offline_log import read_log

ROOT = Path(__file__).parents[2]
AGENTS = sorted((ROOT / "sweeps" / "wandb").glob("*.yaml"))


def combinations(parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All of a grid; of a range both ends."""
    choices = [
        setting.get("values") or [setting["value"]]
        if "min" not in setting
        else [setting["min"], setting["max"]]
        for setting in parameters.values()
    ]
    for values in itertools.product(*choices):
        yield dict(zip(parameters, values, strict=True))


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_a_sweep_for_agents_is_one(path: Path) -> None:
    sweep = yaml.safe_load(path.read_text())
    assert sweep["command"] == ["${env}", "${interpreter}", "${program}", "${args_no_hyphens}"]
    assert (ROOT / sweep["program"]).is_file()
    assert sweep["metric"] == {"name": "valid/ppl", "goal": "minimize"}
    ranges = [setting for setting in sweep["parameters"].values() if "min" in setting]
    assert sweep["method"] == ("bayes" if ranges else "grid")
    assert all(setting["distribution"] == "log_uniform_values" for setting in ranges)
    assert sweep["parameters"]["logger"] == {"value": "wandb"}


@pytest.mark.thorough
@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_every_combination_of_an_agent_is_a_run(path: Path, command: Command) -> None:
    """Composed and checked by train.py itself, of which only the training is left out."""
    from wandb.sdk.launch.sweeps.utils import create_sweep_command_args  # in seconds, so only here

    asked = list(combinations(yaml.safe_load(path.read_text())["parameters"]))
    configs: list[Any] = []
    with patch("hornn.run.train.train", configs.append):
        for values in asked:
            args = {"args": {key: {"value": value} for key, value in values.items()}}
            done = command("train", *create_sweep_command_args(args)["args_no_hyphens"])
            assert (done.code, done.err) == (0, "")
    assert len(configs) == len(asked) > 1
    for cfg, values in zip(configs, asked, strict=True):
        numbers = {key: value for key, value in values.items() if not isinstance(value, str)}
        assert {key: OmegaConf.select(cfg, key) for key in numbers} == numbers
        assert cfg.logger.wandb.offline is False


def test_there_are_sweeps_for_agents() -> None:
    assert [path.stem for path in AGENTS] == ["alpha", "order_pooling", "search"]


@pytest.mark.slow
def test_an_agent_keeps_its_say(process: Command, small: list[str], tmp_path: Path) -> None:
    """W&B's own variables, as `wandb agent` sets them: the id, the project and the parameters are the agent's."""
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text("wandb_version: 1\nmodel: {value: hornn_max}\nmodel.order: {value: 2}\n")
    done = process(
        "train",
        *small,
        "trainer.max_steps=2",
        *("logger=wandb_offline", f"run_dir={tmp_path / 'run'}", "model=hornn_max", "model.order=2"),
        WANDB_SWEEP_ID="sweep1",
        WANDB_RUN_ID="abcdefgh",
        WANDB_PROJECT="theirs",
        WANDB_ENTITY="team",
        WANDB_SWEEP_PARAM_PATH=str(parameters),
    )
    assert done.code == 0
    log = read_log(tmp_path / "run")
    assert (log["run"]["run_id"], log["run"]["project"]) == ("abcdefgh", "theirs")
    config = log["run"]["config"]["update"] | log["config"]["update"]
    assert (config["model"], config["model.order"], config["cell"]["order"]) == ("hornn_max", 2, 2)


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_what_an_agent_searches_contains_the_recipe(path: Path, command: Command) -> None:
    parameters = yaml.safe_load(path.read_text())["parameters"]
    configs: list[Any] = []
    with patch("hornn.run.train.train", configs.append):
        words = [
            f"{key}={parameters[key]['value']}"
            for key in ("experiment", "model")
            if "value" in parameters[key]
        ]
        assert command("train", *words).code == 0
    for key, setting in parameters.items():
        recipe = OmegaConf.select(configs[0], key)
        if "min" in setting:
            assert setting["min"] <= recipe <= setting["max"], key
        elif "values" in setting and key != "model":
            assert recipe in setting["values"], key
