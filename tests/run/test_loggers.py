"""Weights & Biases: how a run presents itself there, read back from its offline log."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import wandb

from hornn.run.identity import Identity
from hornn.run.loggers import wandb_logger
from run.offline_log import read_log
from sweep.mini import wait_for

Command = Callable[..., Any]
ROOT = Path(__file__).parents[2]
ABOUT = Identity(
    choices={"model": "hornn_fofe", "data": "ptb"},
    config={"model": {"order": 2}, "data": {}},
    where={},
    name="0123456789",
    seed=3,
    folder=Path(),
    counted=False,
)


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
