"""Multiruns under launchers of Hydra's own: submitit, by its local executor, joblib, and ours for Slurm."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornn.sweep.record import Record
from words import settled

ROOT = Path(__file__).parents[2]
Process = Callable[..., Any]
TABLE = """# @package _global_
sweep:
  name: mini
  title: "Mini"
  paper: "no paper"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1]
  rows:
    - {name: elman, label: elman, run: [model=rnn]}
    - {name: second-order, label: second-order, run: [model=hornn, model.order=2]}
"""
PLUGINS = {
    "basic": "hydra",
    "joblib": "hydra_plugins.hydra_joblib_launcher",
    "submitit_local": "hydra_plugins.hydra_submitit_launcher",
    "slurm": "hydra_plugins.hydra_submitit_launcher",
}
LOCAL = ("hydra.launcher.timeout_min=10", "hydra.launcher.cpus_per_task=1")


def need(launcher: str) -> None:
    try:
        importlib.import_module(PLUGINS[launcher])
    except ModuleNotFoundError:
        pytest.skip("needs the slurm extra")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: `conf/sweeps/mini.yaml` is a table of two runs."""
    monkeypatch.chdir(tmp_path)
    path = Path("conf/sweeps/mini.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(TABLE)
    return tmp_path


def results() -> dict[str, dict[str, Any]]:
    return {str(path): json.loads(path.read_text()) for path in sorted(Path("outputs").rglob("result.json"))}


def logs() -> dict[str, str]:
    return {str(path): path.read_text() for path in Path("outputs").rglob("train.log")}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["basic", "joblib", "submitit_local"])
def test_a_table_keeps_its_rows_and_is_not_run_twice(
    launcher: str, fresh_process: Process, small: list[str], folder: Path
) -> None:
    need(launcher)
    words = ["-m", "--config-dir=conf", f"hydra/launcher={launcher}", "sweeps=mini", *small]
    words += LOCAL if launcher == "submitit_local" else []
    done = fresh_process("train", *words)
    assert (done.code, done.err) == (0, "")
    first, said = results(), logs()
    assert sorted(result["choices"]["model"] for result in first.values()) == ["hornn", "rnn"]
    rows = {entry.row: (entry.status, entry.run_dir) for entry in Record("mini").read()}
    assert rows == {
        row: ("done", str(Path(path).parent))
        for path, result in first.items()
        for row in ["elman" if result["choices"]["model"] == "rnn" else "second-order"]
    }
    assert done.out.startswith("mini: 0 of 2 done, 2 queued\n")
    assert "elman seed=1: done in " in done.out
    assert done.out.endswith("mini: 2 of 2 done\n")
    assert fresh_process("train", *words).code == 0
    assert results() == first
    assert logs() == said


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["basic", "joblib", "submitit_local"])
def test_a_row_that_starts_from_another_waits_for_it(
    launcher: str, fresh_process: Process, small: list[str], folder: Path
) -> None:
    need(launcher)
    later = "    - {name: deeper, label: deeper, run: [model=rnn, trainer.max_epochs=2], start: elman}\n"
    (folder / "conf/sweeps/mini.yaml").write_text(
        TABLE.replace("    - {name: elman", later + "    - {name: elman")
    )
    words = ["-m", "--config-dir=conf", f"hydra/launcher={launcher}", "sweeps=mini", *small]
    words = [word for word in words if not word.startswith("trainer.max_epochs")]
    words += LOCAL if launcher == "submitit_local" else []
    done = fresh_process("train", *words, "hydra.sweeper.only=[deeper]")
    assert (done.code, done.err) == (0, "")
    assert {entry.row: entry.status for entry in Record("mini").read()} == {"elman": "done", "deeper": "done"}
    (weights,) = {result["config"]["init_from"] for result in results().values()} - {None}
    assert list(Path().glob(str(Path(weights).with_name("result.json"))))  # the seed is an asterisk


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_a_run_that_fails_is_told_of(
    launcher: str, fresh_process: Process, small: list[str], folder: Path
) -> None:
    need(launcher)
    words = [
        "-m",
        f"hydra/launcher={launcher}",
        *small,
        "init_from=nowhere.ckpt",
        "model=rnn,lstm",
        "sweep.name=mine",
    ]
    done = fresh_process("train", *words, *(LOCAL if launcher == "submitit_local" else []))
    assert done.code == 2
    assert " of 2 jobs failed: " in done.err
    assert len(done.err.splitlines()) == 1
    assert "nowhere.ckpt" in done.out
    (entry, *_) = [entry for entry in Record("mine").read() if entry.status == "failed"]
    assert f"{entry.row} seed=1: failed: " in done.out


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in listed.stdout.split()]


@pytest.mark.slow
@pytest.mark.thorough
def test_a_job_whose_time_is_over_continues_its_run(small: list[str], folder: Path) -> None:
    """The signal is the one that Slurm sends so long before the end as `signal_delay_s` says."""
    need("submitit_local")
    words = ["-m", "hydra/launcher=submitit_local", *LOCAL, *small, "schedule=constant", "model=rnn"]
    launcher = subprocess.Popen(
        [
            sys.executable,
            str(ROOT / "src/train.py"),
            *settled([*words, "trainer.max_epochs=100", "checkpoint_every=5"]),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 120
        while not any(Path("outputs").rglob("metrics.csv")):
            assert time.monotonic() < until, "no epoch ends"
            time.sleep(0.05)
        (controller,) = (path.name for path in Path("outputs/.submitit").iterdir() if path.name.isdigit())
        (job,) = children(int(controller))
        os.kill(job, signal.SIGUSR2)
        _, said = launcher.communicate(timeout=300)
    finally:
        launcher.kill()
    assert (launcher.returncode, said) == (0, "")
    ((path, result),) = results().items()
    log = (Path(path).parent / "train.log").read_text()
    assert log.count("  writes to ") == 1
    assert log.count("  continues in ") == 1
    assert [record["epoch"] for record in result["metrics"]] == list(range(1, 101))


@pytest.mark.slow
@pytest.mark.thorough
def test_several_devices_inside_a_job(fresh_process: Process, small: list[str], folder: Path) -> None:
    """Lightning starts the ranks by itself, although Slurm's variables say that there is one task."""
    need("submitit_local")
    slurm = {
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "1",
        "SLURM_JOB_NAME": "train",
        "SLURM_NTASKS_PER_NODE": "1",
    }
    devices = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"]
    words = ["-m", "hydra/launcher=submitit_local", *LOCAL, *small, *devices, "model=rnn"]
    done = fresh_process("train", *words, **slurm)
    assert (done.code, done.err) == (0, "")
    (result,) = results().values()
    assert result["world_size"] == 2


def test_what_slurm_is_asked_for(process: Process, folder: Path) -> None:
    """Slurm's commands are stand-ins: that which submits keeps the script and refuses."""
    need("slurm")
    for name in ("sbatch", "srun"):
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\ncp "$1" {folder}/script\necho no such cluster >&2\nexit 1\n')
        path.chmod(0o755)
    words = ["-m", "hydra/launcher=slurm", "hydra.launcher.partition=gpu", "seed=1,2"]
    done = process("train", *words, PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
    assert done.code == 2
    assert "error: Slurm refuses the jobs (no such cluster): see to hydra.launcher.partition" in done.err
    assert "Traceback" not in done.err
    asked = Path("script").read_text().splitlines()
    for line in ("time=1440", "signal=USR2@120", "gpus-per-node=1", "cpus-per-task=4", "partition=gpu"):
        assert f"#SBATCH --{line}" in asked
    assert "#SBATCH --requeue" in asked
    assert any(line.startswith("#SBATCH --array=0-1%") for line in asked)
    assert any(f"{folder}/outputs/slurm/" in line for line in asked)


def test_without_slurm_its_missing_commands_are_named(process: Process, folder: Path) -> None:
    need("slurm")
    (folder / "bin").mkdir()
    done = process("train", "-m", "hydra/launcher=slurm", "seed=1,2", PATH=str(folder / "bin"))
    assert done.code == 2
    assert done.err.endswith(
        "hydra/launcher=slurm needs sbatch and srun on the PATH: start it on a machine of the cluster\n"
    )
    assert done.err.count("\n") == 1


def test_an_installed_slurm_is_not_told_of(process: Process, small: list[str], folder: Path) -> None:
    """Lightning would print how to use `srun`, with each run, wherever that command is installed."""
    path = folder / "bin" / "srun"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    done = process("train", *small, PATH=f"{path.parent}:{os.environ['PATH']}")
    assert (done.code, done.err) == (0, "")
    assert "srun" not in done.out


WITHOUT_PLUGINS = """
import runpy, sys
sys.modules["hydra_plugins"] = None
sys.argv[:] = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_without_the_extra_its_name_is_told(folder: Path) -> None:
    words = [str(ROOT / "src/train.py"), "-m", "hydra/launcher=slurm", "seed=1,2"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PLUGINS, *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: hydra/launcher=submitit_slurm is not installed: pip install -e '.[slurm]'\n"
    )
