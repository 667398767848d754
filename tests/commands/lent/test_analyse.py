"""analyse.py on a finished run: what it measures, at which weights, and where it keeps it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from commands.lent.conftest import Lent
from commands.outcomes import refusal, result_of, rewrite
from hornn.data.base import SPLITS
from hornn.data.midi import KEYS, write_midi
from hornn.result import check_result, write_result
from hornn.sweep.record import Entry, Record
from outcome import Command

SMALL = ("lags=5", "windows=6", "targets=20")


@pytest.fixture
def analyse(command: Command, tmp_path: Path) -> Command:
    cache = f"data.cache_dir={tmp_path / 'cache'}"
    return lambda path, *words: command("analyse", f"checkpoint={path}", cache, *SMALL, *words)


def test_all_is_shown_and_added_to_the_result(analyse: Command, train: Command, tmp_path: Path) -> None:
    assert train("callbacks=snapshots", "model=scrn", "model.adaptive=true", "model.context_size=2").code == 0
    run = tmp_path / "run"
    before = result_of(run)
    done = analyse(run / "best.ckpt", "record=true")
    assert (done.code, done.err) == (0, "")
    for said in ("median norm", "signals before", "saturated units", "known words", "learned factors"):
        assert said in done.out
    assert "lags with 1 % of the gradient or more  ≥ 5" in done.out  # all that were looked at
    after = result_of(run)
    memory = after.pop("memory")
    assert after == before
    check_result({**after, "memory": memory}, ())
    assert [(stage["stage"], stage["epoch"]) for stage in memory["stages"]] in (
        [("start", 0), ("during", 1), ("after", 2)],
        [("start", 0), ("after", 1)],
    )
    assert memory["settings"] == {"split": "valid", "lags": 5, "windows": 6, "targets": 20}
    assert set(memory["stages"][-1]["gradient"]) == {"all", "h", "s"}
    assert len(memory["factors"][0]["values"]) == 2
    assert {"commit", "dirty", "name", "seed", "summary"} <= memory.keys()


def test_the_start_is_where_the_run_began(analyse: Command, train: Command, tmp_path: Path) -> None:
    """A run that hardly moves ends where it began; its weights are drawn again from config and seed alone."""
    assert train("optimizer.lr=1e-12", "seed=7", "trainer.max_steps=1").code == 0
    figures = tmp_path / "figures.json"
    assert analyse(tmp_path / "run" / "best.ckpt", f"result={figures}").code == 0
    start, after = json.loads(figures.read_text())["stages"]
    assert (start["stage"], after["stage"]) == ("start", "after")
    for key in ("gradient", "paths"):
        for name in start[key]:
            for what, values in start[key][name].items():
                assert values == pytest.approx(after[key][name][what], rel=1e-4), (key, name, what)


@pytest.mark.thorough
def test_a_start_from_other_weights_is_not_drawn(
    analyse: Command, command: Command, run_dir: Path, small: list[str], tmp_path: Path
) -> None:
    other = f"run_dir={tmp_path / 'other'}"
    assert command("train", *small, other, f"init_from={run_dir / 'best.ckpt'}").code == 0
    figures = tmp_path / "figures.json"
    assert analyse(tmp_path / "other" / "best.ckpt", f"result={figures}").code == 0
    assert [stage["stage"] for stage in json.loads(figures.read_text())["stages"]] == ["after"]


def test_a_sweep_is_measured_once(
    analyse: Command,
    command: Command,
    run_dir: Path,
    text: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("train", *text, "model=kn", "logger=csv", "run_dir=kn").code == 0
    counts = (tmp_path / "kn" / "result.json").read_bytes()
    shutil.copytree(run_dir, "lost")  # it diverged after its best epoch
    write_result(Path("lost"), {**result_of(run_dir), "status": "diverged"})
    runs = (("kn", "b"), ("lost", "c"), ("run", "a"))
    entries = [Entry(row, 1, row, [], name * 10, "done", None) for row, name in runs]
    Record("mine").merge(entries)
    words = ("sweep=mine", f"data.cache_dir={tmp_path / 'cache'}", *SMALL)
    done = command("analyse", *words)
    assert (done.code, done.err) == (0, "")
    assert "kn/best.ckpt counts and has no states to measure" in done.out
    assert "added to run/result.json" in done.out
    assert (tmp_path / "kn" / "result.json").read_bytes() == counts
    assert "give the checkpoint of a network that has states" in refusal(analyse("kn/best.ckpt"))
    measured = (run_dir / "result.json").read_bytes()
    again = command("analyse", *words)
    assert "run/result.json holds these measurements already" in again.out
    assert (run_dir / "result.json").read_bytes() == measured
    assert "no sweep 'other' on record; outputs/sweeps has: " in refusal(command("analyse", "sweep=other"))


def test_a_sweep_goes_on_behind_what_is_no_text(
    command: Command, run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mido")
    monkeypatch.chdir(tmp_path)
    for split in SPLITS:
        Path("songs", split).mkdir(parents=True)
        write_midi(Path("songs", split, "a.mid"), np.eye(4, KEYS, k=40, dtype=np.uint8), 0.25)
    words = ("data.root=.", "data.name=songs", "data.cache_dir=cache", "logger=csv", "run_dir=song")
    done = command("train", "data=midi", "model=key_counts", *words)
    assert done.code == 0, done.err
    song, text = (Entry(row, 1, row, [], row * 10, "done", None) for row in ("song", "run"))
    Record("mixed").merge([song, text])
    done = command("analyse", "sweep=mixed", "data.cache_dir=cache", *SMALL)
    assert (done.code, done.err) == (0, "")
    assert "song/best.ckpt is no model of text\n" in done.out
    assert "memory" in result_of(run_dir)
    Record("songs").merge([song])
    assert "sweep=songs has no network to measure: give a sweep with" in refusal(
        command("analyse", "sweep=songs", *SMALL)
    )


def test_a_network_without_states_is_one_line(analyse: Command, train: Command, tmp_path: Path) -> None:
    assert train("model=nnlm", "model.order=2").code == 0
    line = refusal(analyse(tmp_path / "run" / "best.ckpt"))
    assert "best.ckpt reads the last word alone and has no states to measure: give the checkpoint of" in line


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("lags=1", "lags must be a whole number >= 2, got 1"),
        ("lags=1000", "needs more than"),
        ("windows=0", "windows"),
        ("sweep=mine", "one of both"),
        ("split=all", "split"),
        ("result=/none/a.json", "does not exist"),
    ],
)
def test_what_cannot_be_measured_is_one_line(analyse: Command, lent: Lent, word: str, said: str) -> None:
    assert said in refusal(analyse(lent.run / "best.ckpt", word))


def test_what_lacks_a_part_cannot_be_measured(
    analyse: Command, command: Command, run_dir: Path, tmp_path: Path
) -> None:
    best = run_dir / "best.ckpt"
    assert "one of both" in refusal(command("analyse"))
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(best, alone / "best.ckpt")
    assert "cannot be read" in refusal(analyse(alone / "best.ckpt", "record=true"))
    rewrite(alone / "best.ckpt", lambda checkpoint: checkpoint.pop("epoch"))
    assert "lacks a part" in refusal(analyse(alone / "best.ckpt"))
