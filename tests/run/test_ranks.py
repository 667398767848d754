"""Which of a run's processes is the first one, and how all of them end."""

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from commands.outcomes import refusal, result_of
from hornn import columns
from hornn.command_line.ending import FAILED, UNFINISHED
from hornn.run.lock import Busy, lock_folder
from hornn.run.termination import ProcessLost, explain_lost_rank

ROOT = Path(__file__).parents[2]
TWO = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"]
# What `srun -n4` says to the second of its tasks.
SECOND_TASK = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NAME": "sh",
    "SLURM_NODEID": "0",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "1",
}


@pytest.mark.each(2)
@pytest.mark.parametrize("model", ["rnn", "kn"])
@pytest.mark.parametrize("name", ["SLURM_PROCID", "RANK", "LOCAL_RANK"])
def test_a_run_of_one_process_is_the_first_of_it(
    command: Callable[..., Any],
    text: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    model: str,
) -> None:
    """A cluster starts several runs at once, each with its own number, which Lightning takes for the rank."""
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    of_networks = ["model.hidden_size=6", "trainer.max_epochs=1"] if model == "rnn" else []
    words = [*text, f"model={model}", *of_networks, "logger=csv", f"run_dir={tmp_path / 'run'}"]
    with lock_folder(tmp_path / "run"):
        assert command("train", *words).code == Busy.exit_code
    done = command("train", *words)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{model} on files: loading\n")
    assert result_of(tmp_path / "run")["status"] == "completed"
    assert (tmp_path / "run" / "config.yaml").exists()
    assert (tmp_path / "run" / "csv" / "version_0" / "metrics.csv").exists()


def test_a_process_beyond_the_devices_is_refused(
    command: Callable[..., Any], small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    words = [*small, *TWO[:2], "trainer.devices=1", f"run_dir={tmp_path / 'run'}"]
    assert refusal(command("train", *words)) == (
        "error: LOCAL_RANK=1 says that this is process 2 of this machine, and trainer.devices makes 1: give more "
        "trainer.devices, or unset LOCAL_RANK\n"
    )


@pytest.mark.slow
def test_a_task_of_several_trains_a_run_of_its_own(
    fresh_process: Callable[..., Any], small: list[str], tmp_path: Path
) -> None:
    """Lightning by itself refuses several tasks of Slurm's where they are not the processes of one run."""
    words = [*small, "logger=wandb_offline", f"run_dir={tmp_path / 'run'}"]
    done = fresh_process("train", *words, **SECOND_TASK)
    assert (done.code, done.err) == (0, "")
    assert result_of(tmp_path / "run")["status"] == "completed"
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))


SLOW_END = """
import time
from lightning.pytorch.callbacks import Callback

class SlowEnd(Callback):
    def on_exception(self, trainer, module, exception):
        if trainer.is_global_zero:
            time.sleep(8)
"""


@pytest.mark.slow
@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["model=rnn", "model.activation=relu", "optimizer.lr=1000"],
            FAILED,
            "error: training diverged at update",
        ),
        (["trainer.max_time=00:00:00:01", "trainer.max_epochs=4000", "schedule=constant"], UNFINISHED, ""),
    ],
)
def test_the_first_process_has_time_to_end(
    process: Callable[..., Any], small: list[str], tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    """Lightning looks every 5 seconds, and kills it where another process has ended with an exit code of its own."""
    (tmp_path / "slow_end.py").write_text(SLOW_END)
    slow = ["+callbacks.slow._target_=slow_end.SlowEnd", f"run_dir={tmp_path / 'run'}"]
    done = process("train", *small, *TWO, *slow, *words, PYTHONPATH=f"{ROOT / 'src'}:{tmp_path}")
    assert (done.code, done.err.count("\n")) == (code, bool(said))
    assert done.err.startswith(said)
    assert (code == FAILED) == (tmp_path / "run" / "result.json").exists()


@pytest.mark.slow
def test_no_process_waits_for_one_whose_port_is_taken(
    process: Callable[..., Any], small: list[str], tmp_path: Path
) -> None:
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        done = process("train", *small, *TWO, f"run_dir={tmp_path / 'run'}", MASTER_PORT=str(port))
    assert (done.code, done.err.count("\n")) == (FAILED, 1)
    assert done.err.startswith(
        f"error: MASTER_PORT={port} is taken by another process: set MASTER_PORT to a free"
    )
    until = time.monotonic() + 5
    while str(tmp_path) in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
        assert time.monotonic() < until, "a rank is left at work"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "said",
    [
        "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:7",
        "NCCL communicator was aborted on rank 1.",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "ncclSystemError: ... Last error:\nsocketProgress: Connection closed by remote peer node1<45074>",
    ],
)
def test_what_is_said_of_a_lost_process(said: str) -> None:
    with pytest.raises(
        ProcessLost, match="another process of this run has ended; the same command continues"
    ):
        explain_lost_rank(RuntimeError(said), SimpleNamespace(world_size=2))
    explain_lost_rank(RuntimeError(said), SimpleNamespace(world_size=1))
    explain_lost_rank(RuntimeError("Duplicate GPU detected"), SimpleNamespace(world_size=2))


def test_columns_of_fewer_than_there_are_processes_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of three reads the first column, and that is none of its own."""
    held = [torch.tensor([[1.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])]
    monkeypatch.setattr(columns, "world_size", lambda: 3)
    monkeypatch.setattr(columns, "_width", 2)

    def all_gather(parts: list[torch.Tensor], own: torch.Tensor) -> None:
        for part, theirs in zip(parts, held, strict=True):
            part.copy_(theirs)

    monkeypatch.setattr(columns, "all_gather", all_gather)
    for own in held:
        assert columns.gather(own).tolist() == [[1.0], [2.0]]
