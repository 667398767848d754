"""The record, the folders of runs, GPUs, the name of a run, and the list of sweeps."""

import fcntl
import io
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf
from rich.console import Console

from hornn.identity import WITHOUT_EFFECT, config_hash, run_folder
from hornn.result import write_result
from hornn.sweep.compose import check_not_a_table, check_start
from hornn.sweep.folder import LOCK, claim, is_claimed, last_lines, read_progress, result_of
from hornn.sweep.gpus import Pool, gpu_names, gpus_wanted
from hornn.sweep.job import Job
from hornn.sweep.record import Entry, Record
from hornn.sweep.status import show
from hornn.sweep.sweeper import picked, with_starts
from sweep.mini import ROOT


def entry(row: str, seed: int = 1, config: str = "aaaaaaaaaa", status: str = "queued") -> Entry:
    run_dir = f"outputs/{row}/{config}/seed={seed}"
    return {
        "row": row,
        "seed": seed,
        "run_dir": run_dir,
        "overrides": [],
        "config_hash": config,
        "status": status,
        "error": "no luck" if status == "failed" else None,
    }


# -- the record ----------------------------------------------------------------------------------------------


def test_launches_are_merged(tmp_path: Path) -> None:
    record = Record("mini", tmp_path)
    assert record.read() == []
    record.merge([entry("a"), entry("b")])
    record.merge([entry("a", seed=2)])
    record.merge([entry("a", status="done")])
    assert record.read() == [entry("a", status="done"), entry("b"), entry("a", seed=2)]
    record.merge([entry("a", config="bbbbbbbbbb"), entry("a", config="cccccccccc")], supersede=True)
    assert [(e["row"], e["seed"], e["config_hash"][0]) for e in record.read()] == [
        ("b", 1, "a"),
        ("a", 2, "a"),
        ("a", 1, "b"),
        ("a", 1, "c"),
    ]
    assert json.loads((tmp_path / "mini.json").read_text())["schema_version"] == 1


def merge_often(folder: Path, row: str) -> None:
    for seed in range(20):
        Record("mini", folder).merge([entry(row, seed)])


def test_no_launcher_loses_what_another_one_wrote(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=merge_often, args=(tmp_path, row)) for row in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(Record("mini", tmp_path).read()) == 40


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"jobs": []}',
        '{"schema_version": 1, "jobs": [{"row": "a"}]}',
        json.dumps({"schema_version": 1, "jobs": [entry("a", status="lost")]}),
    ],
)
def test_a_damaged_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "mini.json").write_text(text)
    with pytest.raises(ValueError, match=r"mini.json is damaged .*: remove it; the runs are kept"):
        Record("mini", tmp_path).read()


def test_a_record_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "mini.json").write_text('{"schema_version": 2, "jobs": {}}')
    with pytest.raises(ValueError, match="has schema version 2, this program reads 1"):
        Record("mini", tmp_path).read()


# -- the folder of a run -------------------------------------------------------------------------------------


def test_progress_is_the_last_row(tmp_path: Path) -> None:
    assert read_progress(tmp_path) is None
    path = tmp_path / "metrics.csv"
    for text, expected in (
        ("epoch,lr,valid_ppl\n", None),
        ("epoch,lr,valid_ppl\n1,0.5,200.5\n2.5,0.5,150.25\n", (2.5, 150.25)),
        ("epoch,lr,valid_ppl\n1,0.5", None),
    ):
        path.write_text(text)
        assert read_progress(tmp_path) == expected


def test_a_claim_is_one_launchers(tmp_path: Path) -> None:
    run_dir = tmp_path / "a" / "run"
    assert not is_claimed(run_dir)
    first = claim(run_dir)
    assert first is not None
    assert is_claimed(run_dir)
    assert claim(run_dir) is None
    first.close()
    assert not is_claimed(run_dir)
    with pytest.raises(OSError, match=r"\.claim"):
        claim(Path("/dev/null/run"))


def test_the_result_of_another_run(tmp_path: Path) -> None:
    assert result_of(tmp_path, "aaaaaaaaaa", 1) is None
    write_result(tmp_path, {"status": "completed", "config_hash": "aaaaaaaaaa", "seed": 1})
    result = result_of(tmp_path, "aaaaaaaaaa", 1)
    assert result is not None
    assert result["status"] == "completed"
    with pytest.raises(
        ValueError, match="holds the result of config aaaaaaaaaa, seed 1; this is config aaaaaaaaaa"
    ):
        result_of(tmp_path, "aaaaaaaaaa", 2)


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"old\nwords\n" + b"\n\nnew \n\xff end")
    assert last_lines(log, 3) == ["words", "new", "\ufffd end"]
    assert last_lines(log, 15, start=10) == ["new", "\ufffd end"]
    log.write_bytes(b"x" * 200_000 + b"\nend\n")
    assert last_lines(log, 1) == ["end"]


# -- GPUs ----------------------------------------------------------------------------------------------------


def test_gpus_are_taken_and_given_back() -> None:
    pool = Pool(["0", "1"], 2)
    assert pool.take(0) == []
    assert [pool.take(1), pool.take(1), pool.take(2)] == [["0"], ["1"], ["0", "1"]]
    assert pool.take(1) is None
    assert pool.take(0) == []
    pool.give_back(["1"])
    assert pool.take(2) is None
    assert pool.take(1) == ["1"]


def test_gpus_that_are_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu_names([0, 3]) == ["0", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-7f")
    assert gpu_names("auto") == ["2", "GPU-7f"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu_names("auto") == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_names("auto") == []
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: GPU-1)'\necho 'GPU 1: B (UUID: GPU-2)'\n")
    tool.chmod(0o755)
    assert gpu_names("auto") == ["0", "1"]


@pytest.mark.parametrize(
    ("accelerator", "devices", "names", "count"),
    [
        ("cpu", 4, ["0"], 0),
        ("auto", 1, [], 0),
        ("auto", 1, ["0"], 1),
        ("gpu", 1, ["0", "1"], 1),
        ("gpu", "2", ["0", "1"], 2),
        ("cuda", -1, ["0", "1"], 2),
    ],
)
def test_gpus_wanted(accelerator: str, devices: Any, names: list[str], count: int) -> None:
    assert gpus_wanted(accelerator, devices, names) == count


@pytest.mark.parametrize(
    ("devices", "names", "message"),
    [
        (4, ["0", "1"], r"needs 4 GPU\(s\), the launcher has 2 \(0, 1\)"),
        (-1, [], r"needs 1 GPU\(s\), the launcher has 0 \(none\)"),
        ([1], ["0", "1"], r"trainer.devices=\[1\] in a sweep: give their number"),
    ],
)
def test_gpus_that_there_are_not(devices: Any, names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpus_wanted("gpu", devices, names)


# -- the name of a run ---------------------------------------------------------------------------------------


def test_what_names_a_run() -> None:
    config = {
        "seed": 1,
        "run_dir": None,
        "data": {"root": "/a", "unit": "word"},
        "sweep": {"rows": []},
        "lr": 0.5,
    }
    digest = config_hash(config)
    assert run_folder(config, "rnn", "ptb") == Path(f"outputs/rnn/ptb/{digest}/seed=1")
    same = {**config, "seed": 2, "sweep": {}, "data": {"root": "/b", "unit": "word"}}
    assert run_folder(same, "rnn", "ptb") == Path(f"outputs/rnn/ptb/{digest}/seed=2")
    assert config_hash({**config, "lr": 0.6}) != digest
    starts = [{**config, "seed": seed, "init_from": f"a/seed={seed}/best.ckpt"} for seed in (1, 2)]
    assert config_hash(starts[0]) == config_hash(starts[1]) != digest, "one name for all seeds of a row"
    assert config_hash({**starts[0], "init_from": "a/seed=2/best.ckpt"}) != config_hash(starts[0])
    assert run_folder({**config, "run_dir": "here"}, "rnn", "ptb") == Path("here")


@pytest.mark.parametrize("overrides", [[], ["data=ptb"], ["data=text8"], ["data=text8", "data.variant=head"]])
def test_the_folder_names_the_corpus_as_its_results_do(overrides: list[str]) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", overrides, return_hydra_config=True)
    config = OmegaConf.to_container(cfg, resolve=False)
    assert isinstance(config, dict)
    folder = run_folder(config, "rnn", cfg.hydra.runtime.choices["data"])  # type: ignore[arg-type]
    assert folder.parts[2] == instantiate(cfg.data).name


def test_every_key_without_effect_is_there() -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config")
    for key in set(WITHOUT_EFFECT) - {"data.url"}:  # of some corpora only
        assert OmegaConf.select(cfg, key, default="absent") != "absent", key


# -- some rows of a table ------------------------------------------------------------------------------------


def test_picked_rows_come_as_they_were_named() -> None:
    runs = {name: [f"model={name}"] for name in ("rnn", "lstm", "gru")}
    assert picked(runs, ["gru", "rnn", "gru"]) == ["gru", "rnn"]
    assert picked(runs, None) == ["rnn", "lstm", "gru"]


def test_rows_come_behind_those_that_they_start_from() -> None:
    assert with_starts(["deep", "rnn", "stack"], {"deep": "rnn", "stack": "wide"}) == [
        "rnn",
        "deep",
        "wide",
        "stack",
    ]


@pytest.mark.parametrize("result", [None, {"status": "diverged"}, {"status": "completed"}])
def test_a_start_that_is_not_done(tmp_path: Path, result: dict[str, Any] | None) -> None:
    job = Job(["deep"], [], {"seed": 1, "init_from": str(tmp_path / "best.ckpt")}, tmp_path / "deep")
    if result:
        write_result(tmp_path, result)
    if result == {"status": "completed"}:
        check_start(job)
        return
    with pytest.raises(ValueError, match=f"deep starts from the run in {tmp_path}, which is not done"):
        check_start(job)


# -- the list of sweeps --------------------------------------------------------------------------------------


def shown(*arguments: Any) -> list[str]:
    console = Console(record=True, width=100, file=io.StringIO())
    show(*arguments, console=console)
    return console.export_text().splitlines()


def test_the_status_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown() == ["no sweep has been launched yet: outputs/sweeps has none"]
    rows = ("done", "diverged", "at_work", "by_hand", "cut", "failed", "waiting", "damaged")
    record = {row: entry(row, status="failed" if row == "failed" else "running") for row in rows}
    Record("mini").merge(record.values())
    folders = {row: Path(one["run_dir"]) for row, one in record.items()}
    for folder in folders.values():
        folder.mkdir(parents=True)
    result = {"config_hash": "aaaaaaaaaa", "seed": 1, "valid_ppl": 90.0, "test_ppl": 80.0}
    write_result(folders["done"], {**result, "status": "completed"})
    write_result(folders["diverged"], {**result, "status": "diverged", "error": "infinite"})
    (folders["damaged"] / "result.json").write_text("{")
    for row in ("at_work", "by_hand", "cut"):
        (folders[row] / "metrics.csv").write_text("epoch,valid_ppl\n3,123.456\n")
    held = claim(folders["at_work"])
    by_hand = (folders["by_hand"] / LOCK).open("w")
    fcntl.flock(by_hand, fcntl.LOCK_EX)
    assert shown() == ["mini: 1 of 8 done, 3 failed, 1 queued, 2 running, 1 unfinished"]
    lines = [line.split() for line in shown("mini")]
    assert lines[2:10] == [
        ["done", "1", "done", "90.00", "80.00"],
        ["diverged", "1", "failed"],
        ["at_work", "1", "running", "3", "123.46"],
        ["by_hand", "1", "running", "3", "123.46"],
        ["cut", "1", "unfinished", "3", "123.46"],
        ["failed", "1", "failed"],
        ["waiting", "1", "queued"],
        ["damaged", "1", "failed"],
    ]
    assert [" ".join(line) for line in lines[10:12]] == [
        "diverged seed=1: infinite",
        "failed seed=1: no luck",
    ]
    assert "result.json is damaged" in " ".join(lines[12])
    assert held is not None
    held.close()
    by_hand.close()
    with pytest.raises(ValueError, match="no sweep 'maxi' on record; outputs/sweeps has: mini"):
        shown("maxi")


@pytest.mark.slow
def test_the_command_is_quick(tmp_path: Path) -> None:
    Record("mini", tmp_path / "outputs" / "sweeps").merge([entry("a")])
    status = str(ROOT / "src" / "sweep_status.py")
    run = f"import runpy, sys; sys.argv = ['x']; runpy.run_path({status!r}, run_name='__main__')"
    check = f"{run}; print({{'torch', 'hydra'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "mini: 0 of 1 done, 1 queued\nset()\n"
    started = time.monotonic()
    done = subprocess.run([sys.executable, status, "maxi"], cwd=tmp_path, capture_output=True, text=True)
    assert time.monotonic() - started < 1
    assert (done.returncode, done.stderr) == (
        1,
        "error: no sweep 'maxi' on record; outputs/sweeps has: mini\n",
    )


def test_a_table_without_what_tells_its_runs_apart_is_no_run() -> None:
    def check(rows: list[Any], *words: str) -> None:
        overrides = {"task": ["sweeps=mine", "seed=2", *words]}
        settings = {"overrides": overrides, "runtime": {"choices": {"sweeps": "mine"}}}
        check_not_a_table(OmegaConf.create({"rows": rows}), OmegaConf.create(settings))

    rows = [{"name": "wide", "run": ["model=rnn", "model.hidden_size=9"]}, {"name": "quoted", "run": None}]
    with pytest.raises(
        ValueError, match=r"^sweeps=mine is a table of 1 runs: .* model=rnn model.hidden_size=9$"
    ):
        check(rows, "logger=csv")
    check(rows, "model=rnn", "model.hidden_size=9")
    check(rows, "model.hidden_size=8")
    check([*rows, {"name": "base", "run": []}])
    check([])
