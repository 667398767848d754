"""A command that is refused or fails loses nothing that was there."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.outcomes import contents, refusal
from hornn.checkpoint import CARD, read_checkpoint, write_checkpoint
from hornn.run.keeper import RunKeeper
from hornn.run.lock import lock_folder
from hornn.run.train import fit
from hornn.writing import replacing
from outcome import Command


@pytest.mark.each(4)
@pytest.mark.parametrize(
    "setting",
    [
        "overwrite=no",
        "seed=2",
        "model=rnn",
        "overwrite=true optimizer.lr=-1",
        "overwrite=true optimizer.clip_mode=both",
        "overwrite=true model.order=0",
        "overwrite=true schedule.factor=7",
        "overwrite=true data.batch_size=1000",
        "overwrite=true data.train=/none/train.txt",
        "overwrite=true trainer.max_epochs=0",
        "overwrite=true trainer.devices=0",
        "overwrite=true checkpoint_every=-1",
        "overwrite=true network.precision=half",
        "overwrite=true logger=wandbb",
    ],
)
def test_a_finished_run_survives_a_refused_command(train: Command, run_dir: Path, setting: str) -> None:
    before = contents(run_dir)
    refusal(train(*setting.split()))
    assert contents(run_dir) == before


def test_an_unfinished_run_of_other_settings_is_kept(train: Command, run_dir: Path) -> None:
    (run_dir / "result.json").unlink()
    before = contents(run_dir)
    for setting in ("model=rnn", "seed=2"):
        line = refusal(train(setting))
        assert "holds the unfinished run " in line
        assert "give another run_dir, or overwrite=true to replace it" in line
    assert contents(run_dir) == before


@pytest.mark.each(4)
@pytest.mark.parametrize("damaged", ["", "{", '{"schema_version": 1}', '{"schema_version": 2}'])
def test_a_damaged_result_is_kept(train: Command, run_dir: Path, damaged: str) -> None:
    (run_dir / "result.json").write_text(damaged)
    before = contents(run_dir)
    assert "result.json" in refusal(train())
    assert contents(run_dir) == before


def test_a_full_disk_leaves_no_half_checkpoint(train: Command, tmp_path: Path) -> None:
    """The limit on a file's size stands for the disk's end: torch.save fails in the middle of its writing."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        code, _, err = train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert err.count("\n") == 1
    assert "best.ckpt" in err
    assert "raise the limit on the size of a file (ulimit -f)" in err
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left <= {".lock", "config.yaml", "csv"}
    assert train().code == 0  # with space again, the same command runs


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated; ")]
)
def test_a_signal_within_the_writing_of_a_checkpoint_blames_no_disk(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int, said: str
) -> None:
    """Interrupted between two parts of the file, torch.save ends with an error of its own."""
    writes = count()

    @contextmanager
    def signalled(path: Path) -> Iterator[Any]:
        def write(data: bytes) -> int:
            if path.name == "last.ckpt" and next(writes) == 2:
                signal.raise_signal(number)
            return int(file.write(data))

        with replacing(path) as file:
            yield SimpleNamespace(write=write, closed=False)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("hornn.checkpoint.replacing", signalled)
            done = train()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert done.code == code
    assert done.err.startswith(f"error: {said}")
    assert "disk" not in done.err
    assert not (tmp_path / "run" / "last.ckpt").exists()
    assert train().code == 0


@pytest.mark.parametrize("words", [[], ["overwrite=true"]])
def test_what_killed_writers_left_goes(train: Command, run_dir: Path, words: list[str]) -> None:
    (run_dir / "result.json").unlink()
    left = [
        run_dir / f".{name}.123"
        for name in ("last.ckpt", "best.ckpt", "metrics.csv", "config.yaml", "result.json")
    ]
    mine = run_dir / ".notes.txt.1"
    for path in (*left, mine):
        path.write_text("half")
    assert train(*words).code == 0
    assert not any(path.exists() for path in left)
    assert mine.exists()


def test_a_run_whose_folder_is_moved_writes_nothing_in_its_place(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir, moved, validation_start = tmp_path / "run", tmp_path / "moved", RunKeeper.on_validation_start

    def move(keeper: RunKeeper, *given: Any) -> Any:
        run_dir.rename(moved)
        lock_folder(run_dir).close()  # of another run there, and what that one logs
        (run_dir / "csv" / "version_0").mkdir(parents=True)
        return validation_start(keeper, *given)

    monkeypatch.setattr(RunKeeper, "on_validation_start", move)
    code, _, err = train()
    assert (code, err.count("\n")) == (2, 1)
    assert f"{run_dir} was moved or removed while the run was at work" in err
    assert [path.name for path in run_dir.iterdir() if path.suffix not in ("", ".csv")] == []
    monkeypatch.undo()
    assert train(f"run_dir={moved}").code == 0


def test_a_best_epoch_of_another_run_is_not_scored(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit_and_replace(training: Any, resume: Path | None) -> None:
        fit(training, resume)
        checkpoint = read_checkpoint(tmp_path / "run" / "best.ckpt")
        card = {**checkpoint.pop(CARD), "name": "0123456789"}
        write_checkpoint(checkpoint, tmp_path / "run" / "best.ckpt", card)

    monkeypatch.setattr("hornn.run.train.fit", fit_and_replace)
    code, _, err = train()
    assert (code, err.count("\n")) == (2, 1)
    assert "best.ckpt is of another run, which wrote here meanwhile" in err
    assert not (tmp_path / "run" / "result.json").exists()
