"""What is added to a result joins what is there by then, and never an earlier state of it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.outcomes import refusal, result_of
from hornn.run.lock import lock_folder
from outcome import Command


@pytest.fixture
def evaluate(
    command: Command, run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """`evaluate.py record=true` on the finished run; `meanwhile` happens while it measures."""

    def run(meanwhile: Callable[[], Any]) -> Any:
        def happen() -> dict[str, Any]:
            held.append(meanwhile())
            return {"commit": None, "dirty": None}

        held: list[Any] = []
        monkeypatch.setattr("hornn.use.evaluate.commit", happen)
        words = ("dynamic_lr=0.1", "record=true", f"data.cache_dir={tmp_path / 'cache'}")
        return command("evaluate", f"checkpoint={run_dir / 'best.ckpt'}", *words)

    return run


def change(run_dir: Path, **parts: Any) -> None:
    (run_dir / "result.json").write_text(json.dumps(result_of(run_dir) | parts))


def test_two_additions_both_stay(evaluate: Command, run_dir: Path) -> None:
    before = result_of(run_dir)

    def meanwhile() -> None:
        change(run_dir, samples={"texts": []})
        os.utime(run_dir / "result.json", (1e9, 1e9))

    done = evaluate(meanwhile)
    assert done.code == 0, done.err
    assert (run_dir / "result.json").stat().st_mtime == 1e9, "a sweep tells by it what was trained anew"
    after = result_of(run_dir)
    assert after.pop("dynamic")["lr"] == 0.1
    assert after == {**before, "samples": {"texts": []}}


@pytest.mark.parametrize("part", [{"finished": "2030-01-01T00:00:00+00:00"}, {"name": "0123456789"}])
def test_a_newer_run_keeps_its_result(evaluate: Command, run_dir: Path, part: dict[str, str]) -> None:
    line = refusal(evaluate(lambda: change(run_dir, **part)))
    assert f"{run_dir / 'result.json'} is no longer the result of the run that was measured" in line
    assert result_of(run_dir).items() >= part.items()
    assert "dynamic" not in result_of(run_dir)


def test_a_result_that_is_gone_does_not_come_back(evaluate: Command, run_dir: Path) -> None:
    assert "is no longer the result" in refusal(evaluate((run_dir / "result.json").unlink))
    assert not (run_dir / "result.json").exists()


@pytest.mark.thorough
def test_a_run_in_progress_is_left_alone(evaluate: Command, run_dir: Path) -> None:
    before = result_of(run_dir)
    done = evaluate(lambda: lock_folder(run_dir))
    assert done.code == 75
    assert f"another process is working on {run_dir}" in done.err
    assert result_of(run_dir) == before
