"""Which of a run's processes is the first one, and how all of them end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from commands.outcomes import result_of
from hornn.run.lock import Busy, lock_folder

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
    assert result_of(tmp_path / "run")["status"] == "completed"
    assert (tmp_path / "run" / "config.yaml").exists()
    assert (tmp_path / "run" / "csv" / "version_0" / "metrics.csv").exists()


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
