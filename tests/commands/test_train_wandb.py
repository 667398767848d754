"""train.py with Weights & Biases: without a network, and without a login."""

import os
from pathlib import Path

import pytest

from commands.outcomes import refusal, result_of
from outcome import Command


@pytest.mark.thorough
@pytest.mark.slow
def test_offline_wandb_runs_below_the_run_and_each_job_has_its_own(
    process: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = process("train", "-m", *small, "logger=wandb_offline", "seed=1,2")
    assert (code, err) == (0, "")
    logs = sorted(path.relative_to(tmp_path).parts[4] for path in tmp_path.glob("outputs/**/*.wandb"))
    assert logs == ["seed=1", "seed=2"]
    assert {result_of(path.parent)["seed"] for path in tmp_path.glob("outputs/**/result.json")} == {1, 2}
    said = [path.read_text() for path in tmp_path.glob("outputs/**/train.log")]
    assert len(said) == 2
    assert all("wandb leet outputs/hornn_fofe/files/" in log for log in said)


@pytest.mark.parametrize("mode", ["offline", "disabled"])
def test_nothing_is_sent_where_the_environment_says_so(
    command: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("WANDB_MODE", mode)
    line = refusal(command("train", *small, "logger=wandb", f"run_dir={tmp_path / 'run'}"))
    assert (
        f"WANDB_MODE={mode} says that nothing is sent: use logger=wandb_offline, or unset WANDB_MODE" in line
    )


@pytest.mark.slow
def test_wandb_without_a_login_is_one_line(process: Command, small: list[str], tmp_path: Path) -> None:
    environment = {
        "WANDB_API_KEY": None,
        "HOME": str(tmp_path),
        "HORNN_CACHE": os.environ.get(
            "HORNN_CACHE", str(Path.home() / ".cache/hornn/kernels")
        ),  # built there
        "NETRC": str(tmp_path / "none"),
        "WANDB_MODE": None,
    }
    run = f"run_dir={tmp_path / 'run'}"
    code, out, err = process("train", *small, "logger=wandb", run, **environment)
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("error: Weights & Biases cannot start a run (")
    assert "wandb login" in err
    assert "logger=wandb_offline" in err
    assert "epoch" not in out


def test_a_wrong_variable_of_wandb_is_named(process: Command, small: list[str], tmp_path: Path) -> None:
    run = f"run_dir={tmp_path / 'run'}"
    code, _, err = process("train", *small, "logger=wandb_offline", run, WANDB_BASE_URL="garbage")
    assert code == 2
    assert err.startswith("error: Weights & Biases cannot start a run (WANDB_BASE_URL=garbage: ")
    assert err.endswith("): unset that variable\n")
    assert err.count("\n") == 1
