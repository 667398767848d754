"""Two of everything at once: one does the work, or both do the same, and the outcome is that of one alone."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.outcomes import result_of
from faults.commands import ROOT, ForkServer
from faults.draws import cases, draw
from faults.same import assert_same_run
from faults.sweeps import SWEEP, make_place, outcome, starts
from faults.trainings import Trainings
from hornn.run.lock import Busy


@pytest.fixture(scope="module")
def trainings(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    return Trainings(server, tmp_path_factory.mktemp("races"))


@pytest.mark.parametrize("number", cases(1, 0.5))
def test_two_trainings_of_one_run(
    server: ForkServer, trainings: Trainings, tmp_path: Path, number: int
) -> None:
    run_dir = tmp_path / "run"
    one = server.start("train", *trainings.words(run_dir))
    time.sleep(draw("two trainings", number).uniform(0, 0.5))
    other = server.start("train", *trainings.words(run_dir))
    ends = [one.end(), other.end()]
    assert sorted(ended.code for ended in ends) in ([0, 2], [0, Busy.exit_code]), ends
    assert_same_run(trainings.whole, run_dir)


@pytest.mark.parametrize("number", cases(1, 0.5))
def test_two_runs_that_make_one_cache_of_tokens(
    server: ForkServer, trainings: Trainings, tmp_path: Path, number: int
) -> None:
    cache = f"data.cache_dir={tmp_path / 'cache'}"
    folders = [tmp_path / "one", tmp_path / "two"]
    begun = [server.start("train", *trainings.words(folder), cache) for folder in folders]
    assert [training.end().code for training in begun] == [0, 0]
    for folder in folders:
        assert_same_run(trainings.whole, folder)
    assert not list((tmp_path / "cache").glob(".*"))


@pytest.mark.parametrize("number", cases(0, 0.25))
def test_two_launchers_of_one_sweep(server: ForkServer, tmp_path: Path, number: int) -> None:
    folder = make_place(tmp_path)
    one = server.start("train", *SWEEP, folder=folder)
    time.sleep(draw("two sweeps", number).uniform(0, 2))
    other = server.start("train", *SWEEP, folder=folder)
    ends = [one.end(), other.end()]
    assert [(ended.code, ended.err) for ended in ends] == [(0, ""), (0, "")]
    assert len([line for text in starts(folder) for line in text.splitlines()]) == 4
    assert {row[2] for row in outcome(folder)["mini.json"]} == {"done"}


@pytest.mark.parametrize("number", cases(1, 0.25))
def test_two_scores_of_one_run(server: ForkServer, trainings: Trainings, tmp_path: Path, number: int) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(trainings.whole, run_dir)
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"data.cache_dir={tmp_path}", "record=true"]
    begun = [server.start("evaluate", *words, f"dynamic_lr={lr}") for lr in (0.1, 0.5)]
    assert [scoring.end().code for scoring in begun] == [0, 0]
    result = result_of(run_dir)
    assert result.pop("dynamic")["lr"] in (0.1, 0.5)
    assert result == result_of(trainings.whole)


@pytest.mark.parametrize("number", cases(1, 0.25))
def test_two_reports_keep_the_same_results(server: ForkServer, tmp_path: Path, number: int) -> None:
    tables, (source, *_) = (
        tmp_path / "outputs" / "tables",
        sorted((ROOT / "outputs" / "tables").glob("*/*.json")),
    )
    sweep, result = source.parent.name, json.loads(source.read_text())
    row, _, seed = source.stem.rpartition("-seed")
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    (tmp_path / "sweeps").mkdir()
    shutil.copy(ROOT / "sweeps" / f"{sweep}.yaml", tmp_path / "sweeps")
    job = {"row": row, "seed": int(seed), "run_dir": "outputs/run", "name": result["name"], "status": "done"}
    record = {"schema_version": 2, "sweep": sweep, "jobs": [{**job, "overrides": [], "error": None}]}
    for name, value in ((f"sweeps/{sweep}.json", record), ("run/result.json", result)):
        path = tmp_path / "outputs" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value))
    begun = [server.start("report", "--keep", folder=tmp_path) for _ in range(2)]
    assert [report.end().code for report in begun] == [0, 0]
    kept = tables / sweep / source.name
    assert json.loads(kept.read_text()) == result
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.faults
def test_two_first_builds_of_the_native_kernels(tmp_path: Path) -> None:
    """And a third process, after one was killed while it built."""
    program = "from hornn.kernels import library; print(library.why_not())"
    environment = {**os.environ, "HORNN_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}

    def begin() -> subprocess.Popen[str]:
        words = [sys.executable, "-c", program]
        return subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    killed = begin()
    until = time.monotonic() + 120
    while not list(tmp_path.glob("*/build")):
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1)
    killed.kill()
    killed.communicate()
    pair = [begin(), begin()]
    assert [process.communicate(timeout=300)[0] for process in pair] == ["None\n", "None\n"]
    assert [path.name for path in tmp_path.glob("*/*")].count("native.so") == 1
    assert not list(tmp_path.glob("*/build"))
