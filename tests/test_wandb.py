"""Weights & Biases: how a run presents itself there, read back from its offline log, and the sweeps for its agents."""

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import wandb
import yaml
from omegaconf import OmegaConf
from wandb.sdk.launch.sweeps.utils import create_sweep_command_args

from hornn.experiment import wandb_logger
from sweep.mini import wait_for

Command = Callable[..., Any]
ROOT = Path(__file__).parents[1]
AGENTS = sorted((ROOT / "sweeps" / "wandb").glob("*.yaml"))
ABOUT = {"model": "hornn_fofe", "data": "ptb", "config_hash": "0123456789", "seed": 3, "cell": {"order": 2}}


def read_log(folder: Path) -> dict[str, Any]:
    """The last record of each kind in the one offline run below `folder`."""
    (log,) = folder.rglob("*.wandb")
    words = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(log)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return {record["type"]: record[record["type"]] for record in records if record["type"] in record}


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """`begin(HORNN_SWEEP=...)`: the W&B run of a run that was started with these variables."""

    def start(**environment: str) -> Any:
        for name in ("HORNN_SWEEP", "HORNN_ROW"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return wandb_logger(tmp_path, ABOUT, resume=False).experiment

    yield start
    wandb.finish()


def test_a_run_of_a_sweep_says_where_it_belongs(begin: Callable[..., Any]) -> None:
    run = begin(HORNN_SWEEP="deep_rnn_table2", HORNN_ROW="dots_rnn")
    assert (run.group, run.job_type, run.id) == ("deep_rnn_table2", "dots_rnn", "hornn_fofe-ptb-0123456789-3")
    words = ("paper=deep_rnn", "table=deep_rnn_table2", "model=hornn_fofe", "data=ptb", "seed=3")
    assert set(run.tags) == set(words)


def test_a_run_of_its_own_has_no_group(begin: Callable[..., Any]) -> None:
    run = begin()
    assert (run.group, run.job_type) == ("", "hornn_fofe")
    assert set(run.tags) == {"model=hornn_fofe", "data=ptb", "seed=3"}
    assert run.config["cell"] == {"order": 2}


@pytest.mark.parametrize("name", ["adhoc-12", "smoke_all_cells"])
def test_a_sweep_of_no_paper_names_none(begin: Callable[..., Any], name: str) -> None:
    assert {tag for tag in begin(HORNN_SWEEP=name).tags if tag.startswith("paper")} == set()


def test_a_long_name_makes_no_tag_that_is_refused(begin: Callable[..., Any]) -> None:
    assert "table=" + 58 * "a" in begin(HORNN_SWEEP=100 * "a").tags


@pytest.mark.slow
def test_what_a_run_has_logged(process: Command, small: list[str], tmp_path: Path) -> None:
    words = [
        *small,
        "logger=wandb_offline",
        f"run_dir={tmp_path / 'run'}",
        "model=hornn_max",
        "model.order=2",
    ]
    assert process("train", *words, HORNN_SWEEP="hornn_table1", HORNN_ROW="max-2").code == 0
    log = read_log(tmp_path / "run")
    assert (log["run"]["run_group"], log["run"]["job_type"]) == ("hornn_table1", "max-2")
    assert log["run"]["config"]["update"]["cell"]["order"] == 2
    assert log["config"]["update"]["model"] == "hornn_max"
    assert log["exit"]["exit_code"] == 0


@pytest.mark.slow
def test_a_run_that_diverges_is_marked_failed(process: Command, small: list[str], tmp_path: Path) -> None:
    words = [*small, "logger=wandb_offline", f"run_dir={tmp_path / 'run'}", "optimizer.lr=1e30"]
    done = process("train", *words, "optimizer.clip=null", "model.activation=relu")
    assert done.code == 2
    assert "diverged" in done.err
    assert read_log(tmp_path / "run")["exit"]["exit_code"] == 1


@pytest.mark.slow
def test_an_error_in_the_middle_of_the_test_marks_it_failed(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    words = [*small, "logger=wandb_offline", f"run_dir={tmp_path / 'run'}"]
    with patch("hornn.module.TruncatedBptt.on_test_epoch_end", side_effect=OSError("no space left")):
        assert command("train", *words).code == 2
    assert read_log(tmp_path / "run")["exit"]["exit_code"] == 1


@pytest.mark.slow
def test_an_interrupted_run_is_not_marked_finished_and_goes_on_under_its_id(
    small: list[str], tmp_path: Path
) -> None:
    settings = ["schedule=constant", "trainer.max_epochs=80", "checkpoint_every=5", "logger=wandb_offline"]
    run_dir = tmp_path / "run"
    words = [sys.executable, str(ROOT / "src" / "train.py"), *small, *settings, f"run_dir={run_dir}"]
    running = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # a shell's background job ignores Ctrl-C and would hand that on
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for((run_dir / "metrics.csv").exists)
    running.send_signal(signal.SIGINT)
    assert running.wait() == 130
    first = read_log(run_dir)
    assert first["exit"]["exit_code"] == 1
    (run_dir / "wandb").rename(tmp_path / "before")

    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    second = read_log(run_dir)
    assert second["exit"]["exit_code"] == 0
    assert second["run"]["run_id"] == first["run"]["run_id"]


# -- sweeps by agents of W&B ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_every_combination_of_an_agent_is_a_run(path: Path, command: Command) -> None:
    """Composed and checked by train.py itself, of which only the training is left out."""
    asked = list(combinations(yaml.safe_load(path.read_text())["parameters"]))
    configs: list[Any] = []
    with patch("hornn.experiment.train", configs.append):
        for values in asked:
            args = {"args": {key: {"value": value} for key, value in values.items()}}
            done = command("train", *create_sweep_command_args(args)["args_no_hyphens"])
            assert (done.code, done.err) == (0, "")
    assert len(configs) == len(asked) > 1
    for cfg, values in zip(configs, asked, strict=True):
        numbers = {key: value for key, value in values.items() if not isinstance(value, str)}
        assert {key: OmegaConf.select(cfg, key) for key in numbers} == numbers
        assert cfg.logger.offline is False


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
