"""Multiruns that really train."""

import csv
import fcntl
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hornn.run.lock import Busy
from hornn.sweep.run_state import is_running
from outcome import Outcome
from sweep.mini import ROOT, TABLE, wait_for, write_table
from words import settled


@pytest.mark.slow
def test_a_killed_sweep_is_continued(
    small: list[str], tmp_path: Path, forked_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*small, "schedule=constant", "trainer.max_epochs=20", "checkpoint_every=5", "model=rnn"]
    sweep = [forked_python, str(ROOT / "src" / "train.py"), "-m", *settled(settings)]
    launcher = subprocess.Popen(sweep, stdout=subprocess.DEVNULL)
    wait_for(lambda: any(Path("outputs/rnn").rglob("metrics.csv")))
    launcher.kill()
    launcher.wait()
    (run_dir,) = Path("outputs/rnn").glob("files/*/seed=1")
    wait_for(lambda: not is_running(run_dir))
    assert not (run_dir / "result.json").exists()

    done = subprocess.run(sweep, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": 1 of 1 done\n")
    log = (run_dir / "train.log").read_text()
    assert f"writes to {run_dir}" in log
    assert f"continues in {run_dir}" in log
    with (run_dir / "metrics.csv").open() as file:
        assert [int(float(row["epoch"])) for row in csv.DictReader(file)] == list(range(1, 21))
    result = json.loads((run_dir / "result.json").read_text())
    assert result["status"] == "completed"
    assert "sweep" not in result["config"]
    assert "sweep" not in yaml.safe_load((run_dir / "config.yaml").read_text())["config"]


def test_a_launcher_knows_the_exit_code_of_a_run_that_comes_second(
    command: Callable[..., Outcome], small: list[str], tmp_path: Path
) -> None:
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert command("train", *small, f"run_dir={tmp_path}").code == Busy.exit_code


@pytest.mark.thorough
@pytest.mark.slow
def test_the_rows_of_a_table_under_a_launcher_of_hydras_own(
    command: Callable[..., Outcome], small: list[str], folder: Path, quick_jobs: None
) -> None:
    words = ["-m", "--config-dir=conf", "hydra/launcher=basic", "sweeps=mini", "sweep.seeds=[1,2]", *small]
    assert command("train", *words).code == 0
    assert len(list(Path("outputs/rnn").rglob("result.json"))) == 2
    assert len(list(Path("outputs/hornn").rglob("result.json"))) == 2


@pytest.mark.thorough
@pytest.mark.slow
def test_a_row_that_starts_from_a_trained_network(
    command: Callable[..., Outcome], small: list[str], folder: Path, quick_jobs: None
) -> None:
    write_table(
        f"{TABLE}    - {{name: again, label: again, run: [model=rnn, init_from_lr=0.5], start: elman}}\n"
    )
    words = ["-m", "--config-dir=conf", "hydra/launcher=basic", *small]
    assert command("train", *words, "sweeps=mini", "hydra.sweeper.only=[again]").code == 0
    elman, again = sorted(Path("outputs/rnn").rglob("result.json"), key=lambda path: path.stat().st_mtime)
    assert json.loads(again.read_text())["config"]["init_from"] == str(elman.parents[1] / "seed=*/best.ckpt")
