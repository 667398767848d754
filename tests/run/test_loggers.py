"""Weights & Biases: how a run presents itself there, read back from its offline log."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import wandb

from commands.outcomes import refusal, result_of
from hornn.command_line.ending import TERMINATED
from hornn.run.identity import Identity
from hornn.run.keeper import RunKeeper
from hornn.run.loggers import note_best, wandb_logger
from outcome import Command
from run.offline_log import read_log, records_of, summary_of
from sweep.mini import wait_for
from words import settled

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


def test_a_choice_in_a_folder_of_its_group(
    begin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """conf/model/mine/rnn.yaml is `model=mine/rnn`."""
    monkeypatch.setitem(ABOUT.choices, "model", "mine/rnn")
    run = begin()
    assert (run.id, run.name) == ("mine-rnn-ptb-0123456789-3", "mine/rnn-ptb-0123456789-3")


def test_a_run_of_its_own_has_no_group(begin: Callable[..., Any]) -> None:
    run = begin()
    assert (run.group, run.job_type) == ("", "hornn_fofe")
    assert set(run.tags) == {"model=hornn_fofe", "data=ptb", "seed=3"}
    assert dict(run.config) == {"model": "hornn_fofe", "cell": {"order": 2}, "data": {}}


@pytest.mark.parametrize("name", ["adhoc-12", "smoke_all_cells"])
def test_a_sweep_of_no_paper_names_none(begin: Callable[..., Any], name: str) -> None:
    assert {tag for tag in begin(HORNN_SWEEP=name).tags if tag.startswith("paper")} == set()


def test_a_long_name_makes_no_tag_that_is_refused(begin: Callable[..., Any]) -> None:
    assert "table=" + 58 * "a" in begin(HORNN_SWEEP=100 * "a").tags


@pytest.mark.thorough
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
    begun = log["run"]["config"]["update"]  # which `wandb leet` shows
    assert (begun["model"], begun["cell"]["order"], begun["optimizer"]["lr"]) == ("hornn_max", 2, 0.1)
    assert log["config"]["update"]["model"] == "hornn_max"
    assert log["config"]["update"]["data"]["seq_len"] == 5
    assert log["config"]["update"]["optimizer"]["lr"] == 0.1
    assert log["config"]["update"]["run_name"] == result_of(tmp_path / "run")["name"]
    assert log["exit"]["exit_code"] == 0


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_that_diverges_is_marked_failed(process: Command, small: list[str], tmp_path: Path) -> None:
    words = [*small, "logger=wandb_offline", f"run_dir={tmp_path / 'run'}", "optimizer.lr=1e30"]
    done = process("train", *words, "optimizer.clip=null", "model.activation=relu")
    assert done.code == 2
    assert "diverged" in done.err
    assert read_log(tmp_path / "run")["exit"]["exit_code"] == 1


@pytest.mark.thorough
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
    command: Command, small: list[str], tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    words = [*small, "schedule=constant", "checkpoint_every=5", "logger=wandb_offline", f"run_dir={run_dir}"]
    whole = RunKeeper.on_train_batch_end

    def interrupt(keeper: RunKeeper, trainer: Any, *given: Any) -> None:
        whole(keeper, trainer, *given)
        if trainer.global_step == 20:  # in the second of two epochs
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with patch.object(RunKeeper, "on_train_batch_end", interrupt):
            done = command("train", *words)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.err, done.code) == ("error: interrupted; the same command continues\n", 130)
    first = read_log(run_dir)
    assert first["exit"]["exit_code"] == 1
    (run_dir / "wandb").rename(tmp_path / "before")

    done = command("train", *words)
    assert (done.err, done.code) == ("", 0)
    assert len(result_of(run_dir)["starts"]) == 2
    second = read_log(run_dir)
    assert second["exit"]["exit_code"] == 0
    assert second["run"]["run_id"] == first["run"]["run_id"]


@pytest.mark.slow
def test_the_log_of_a_run_answers_questions(process: Command, small: list[str], tmp_path: Path) -> None:
    """Its summary is of the best epoch, each epoch has its figures, the checkpoint is an artifact if asked for."""
    words = [*small, "trainer.max_epochs=4", "schedule=constant"]
    several = ["logger=[csv,wandb_offline]", "logger.wandb.log_model=true", f"run_dir={tmp_path / 'run'}"]
    done = process("train", *words, *several)
    assert (done.code, done.err) == (0, "")
    assert "wandb leet " in done.out
    result, summary = result_of(tmp_path / "run"), summary_of(tmp_path / "run")
    epochs = [epoch["valid_ppl"] for epoch in result["metrics"]]
    assert summary["valid/ppl"] == pytest.approx(min(epochs))
    assert summary["test/ppl"] == pytest.approx(result["test_ppl"])
    assert summary["lr"] == result["metrics"][-1]["lr"]
    items = [record["item"] for kind, record in records_of(tmp_path / "run") if kind == "history"]
    ends = [item for item in items if "epoch" in item]
    assert [item["epoch"] for item in ends] == [1, 2, 3, 4]
    assert [item["valid/ppl"] for item in ends] == pytest.approx(epochs)
    for key in ("tokens_per_second", "seconds", "memory_mb", "train/nll", "train/max_grad_norm", "valid/nll"):
        assert all(item[key] > 0 for item in ends), key
    assert read_log(tmp_path / "run")["artifact"]["manifest"]["contents"][0]["path"] == "best.ckpt"
    assert list((tmp_path / "run").glob("csv/*/metrics.csv"))


@pytest.mark.thorough
@pytest.mark.slow
def test_a_mixture_has_no_checkpoint_to_send(process: Command, text: list[str], tmp_path: Path) -> None:
    assert process("train", *text, "model=kn", "logger=csv", f"run_dir={tmp_path / 'kn'}").code == 0
    words = ["model=mixture", "model.lengths=[5]", f"init_from=[{tmp_path / 'kn' / 'best.ckpt'}]"]
    asked = ["logger=wandb_offline", "logger.wandb.log_model=true", f"run_dir={tmp_path / 'run'}"]
    done = process("train", *text, *words, *asked)
    assert (done.code, done.err) == (0, "")
    assert "a mixture has no best.ckpt: log_model=true sends nothing" in done.out
    assert summary_of(tmp_path / "run")["test/ppl"] == pytest.approx(result_of(tmp_path / "run")["test_ppl"])


def test_the_summary_is_that_of_the_best_epoch(tmp_path: Path) -> None:
    logger = wandb_logger(tmp_path, ABOUT, resume=False)
    for step, ppl in enumerate((5.0, 4.0, 6.0)):
        logger.log_metrics({"valid/ppl": ppl, "train/ppl": ppl}, step)
        note_best([logger], {"valid/ppl": min(ppl, 4.0 if step else 5.0)})
    wandb.finish()
    summary = summary_of(tmp_path)
    assert (summary["valid/ppl"], summary["train/ppl"]) == (4, 6)


@pytest.mark.thorough
@pytest.mark.slow
def test_characters_are_logged_in_bits(process: Command, small: list[str], tmp_path: Path) -> None:
    done = process("train", *small, "data.unit=char", "logger=wandb_offline", f"run_dir={tmp_path / 'run'}")
    assert (done.code, done.err) == (0, "")
    summary = summary_of(tmp_path / "run")
    for split in ("valid", "test"):
        assert 2 ** summary[f"{split}/bpc"] == pytest.approx(summary[f"{split}/ppl"])


def test_a_logger_of_a_users_own(command: Command, small: list[str], tmp_path: Path) -> None:
    own = (
        "+logger.mine={_target_: lightning.pytorch.loggers.CSVLogger, save_dir: "
        + f"{tmp_path / 'mine'}"
        + "}"
    )
    done = command("train", *small, f"run_dir={tmp_path / 'run'}", own)
    assert (done.code, done.err) == (0, "")
    logs = (tmp_path / "mine").rglob("metrics.csv"), (tmp_path / "run" / "csv").rglob("metrics.csv")
    mine, ours = (next(log).read_text() for log in logs)
    assert mine == ours


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["logger=[csv,wndb]"], "did you mean 'wandb'?"),
        (["logger.project=x", "logger=wandb_offline"], "did you mean 'logger.wandb.project'?"),
        (["logger=wandb_offline", "logger.wandb.run_dir=x"], "unknown key 'logger.wandb.run_dir'"),
        (["+logger.mine._target_=collections.Counter"], "must name a logger of Lightning's"),
        (["+logger.mine={_target_: lightning.pytorch.loggers.CSVLogger, sav_dir: x}"], "sav_dir"),
    ],
)
def test_refused_loggers(
    command: Command, small: list[str], tmp_path: Path, words: list[str], said: str
) -> None:
    assert said in refusal(command("train", *small, f"run_dir={tmp_path / 'run'}", *words))


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("whom", "error"),
    [
        ("both", "terminated; the same command continues"),
        (
            "its logger",
            "the process that writes for Weights & Biases has ended; the same command continues, and",
        ),
    ],
)
def test_a_training_whose_wandb_process_ends_is_continued(
    small: list[str], tmp_path: Path, whom: str, error: str
) -> None:
    """As where a cluster ends every process of a job: no failure, and no traceback of a library's."""
    run_dir = tmp_path / "run"
    words = [*small, f"run_dir={run_dir}", "trainer.max_epochs=2000", "logger=wandb_offline"]
    running = subprocess.Popen(
        [sys.executable, "src/train.py", *settled([*words, "schedule=constant"])],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((run_dir / "metrics.csv").exists)
    listed = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(running.pid)], capture_output=True, text=True
    )
    (logger,) = [
        int(pid) for pid, name in map(str.split, listed.stdout.splitlines()) if name.startswith("wandb")
    ]
    os.kill(logger, signal.SIGKILL)
    if whom == "both":
        running.terminate()
    _, err = running.communicate(timeout=60)
    assert running.returncode == TERMINATED, err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith(f"error: {error}")
