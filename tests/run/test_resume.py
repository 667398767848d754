"""A run that was cut off anywhere and continued is the run that was not."""

import csv
import json
import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hornn.cells.lstm import Lstm
from hornn.kernels.reduced import multiplies_in
from hornn.module import TruncatedBptt
from hornn.network import SequenceModel
from hornn.optim.descent import MomentumSGD
from hornn.optim.schedules import Constant
from hornn.result import score_of
from hornn.run.checkpoint_io import AtomicCheckpointIO
from hornn.run.identity import BEST, LAST
from hornn.run.keeper import PAYLOAD, RunKeeper, check_whole
from run.one_rank import run
from speech.equal import prepare_tiny
from words import settled

ROOT = Path(__file__).parents[2]


class Killed(BaseException):
    """What a SIGKILL is to the program: nothing gets to run after it."""


def outcome(run_dir: Path) -> tuple[list[dict[str, str]], dict[str, Any], Any]:
    """What a run leaves that does not depend on the clock."""
    timed = ("seconds", "tokens_per_second")
    with (run_dir / "metrics.csv").open() as file:
        records = [{k: v for k, v in row.items() if k not in timed} for row in csv.DictReader(file)]
    weights = torch.load(run_dir / "last.ckpt", weights_only=True)["state_dict"]
    return records, weights, score_of(json.loads((run_dir / "result.json").read_text()), "test")


def assert_same(one: Path, other: Path) -> None:
    (records, weights, test), (records_2, weights_2, test_2) = outcome(one), outcome(other)
    assert records == records_2
    assert test == test_2
    assert weights.keys() == weights_2.keys()
    assert all(torch.equal(weights[key], weights_2[key]) for key in weights)


COMMON = [
    "model.hidden_size=6",
    "logger=csv",
    "trainer.enable_progress_bar=false",
    "trainer.max_epochs=4",
    "schedule.threshold=10",
    "schedule.restore_best=true",
]


NO_LIMIT = "trainer.max_steps=-1"


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("place", "limit"),
    [
        *(
            (place, NO_LIMIT)
            for place in ("batch 4", "batch 18", "batch 30", "validation 2", "epoch 1", "epoch 3")
        ),
        *((place, "trainer.max_steps=52") for place in ("batch 18", "epoch 3")),
    ],
)
def test_resume_after_a_cut_anywhere(
    place: str, limit: str, text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = [*text, *COMMON, limit, "checkpoint_every=4"]
    run([*overrides, f"run_dir={tmp_path / 'whole'}"])

    where, number = place.split()

    def cut(owner: type, hook: str, after: bool, count: Any) -> None:
        original = getattr(owner, hook)

        def patched(self: Any, *args: Any) -> None:
            if after:
                original(self, *args)
            if count(self, *args) == int(number):
                raise Killed
            if not after:
                original(self, *args)

        monkeypatch.setattr(owner, hook, patched)

    if where == "batch":
        cut(RunKeeper, "on_train_batch_end", True, lambda self, trainer, *_: trainer.global_step)
    elif where == "validation":
        cut(TruncatedBptt, "on_validation_epoch_end", False, lambda self: self.trainer.current_epoch)
    else:
        cut(RunKeeper, "on_train_epoch_end", True, lambda self, trainer, *_: trainer.current_epoch + 1)
    with pytest.raises(Killed):
        run([*overrides, f"run_dir={tmp_path / 'cut'}"])
    monkeypatch.undo()
    run([*overrides, f"run_dir={tmp_path / 'cut'}"])
    assert_same(tmp_path / "whole", tmp_path / "cut")


def assert_goes_on(
    overrides: list[str], updates: int, every: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of two epochs that is killed after these updates and started again is the run that was not.

    every: updates between its checkpoints; 0: it goes on from the end of the epoch before.
    """
    overrides = [*overrides, "model.hidden_size=6", "logger=csv", "trainer.enable_progress_bar=false"]
    overrides += ["trainer.max_epochs=2", f"checkpoint_every={every}"]
    run([*overrides, f"run_dir={folder / 'whole'}"])
    original = RunKeeper.on_train_batch_end

    def patched(self: RunKeeper, trainer: Any, *args: Any) -> None:
        original(self, trainer, *args)
        if trainer.global_step == updates:
            raise Killed

    monkeypatch.setattr(RunKeeper, "on_train_batch_end", patched)
    with pytest.raises(Killed):
        run([*overrides, f"run_dir={folder / 'cut'}"])
    monkeypatch.undo()
    run([*overrides, f"run_dir={folder / 'cut'}"])
    assert_same(folder / "whole", folder / "cut")


@pytest.mark.each(2)
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("updates", "every"), [(3, 1), (10, 1), (14, 1), (14, 0)]
)  # 10 in an epoch, 3 a batch
def test_music_goes_on_where_it_was_cut_off(
    updates: int, every: int, corpus_root: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of the sequences, the state carried inside of a batch and the weight noise come back, too."""
    root = corpus_root("music/JSB_Chorales.mat")
    music = ["experiment=deep_rnn/music", f"data.root={root}", "data.set=jsb_chorales", "data.batch_size=100"]
    music += ["data.seq_len=20", "network.recurrent_fan_in=5"]
    assert_goes_on(music, updates, every, tmp_path, monkeypatch)


def test_speech_goes_on_where_it_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of an utterance, with the averages of Adam."""
    speech = ["experiment=hornn_acoustic/an4", *prepare_tiny(tmp_path / "corpora")]
    assert_goes_on([*speech, "data.seq_len=30"], 5, 1, tmp_path, monkeypatch)


def run_until_written(name: str, step: int, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is cut off right behind the writing of this checkpoint at this step."""
    original = AtomicCheckpointIO.save_checkpoint

    def cut(
        self: AtomicCheckpointIO, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        original(self, checkpoint, path, storage_options)
        if Path(path).name == name and checkpoint["global_step"] == step:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(AtomicCheckpointIO, "save_checkpoint", cut)
        with pytest.raises(Killed):
            run(words)


def test_the_last_epoch_is_on_record_when_its_checkpoint_is(
    text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was cut off right behind its last checkpoint has no epoch left that would write metrics.csv."""
    run([*text, *COMMON, f"run_dir={tmp_path / 'whole'}"])
    words = [*text, *COMMON, f"run_dir={tmp_path / 'cut'}"]
    run_until_written(LAST, 4 * 14, words, monkeypatch)
    run(words)
    assert_same(tmp_path / "whole", tmp_path / "cut")


def test_a_newer_best_checkpoint_is_of_an_epoch_that_counts(
    text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU may compute the epoch to other digits the second time; the weights of the best one before it are lost."""
    words = [*text, *COMMON, f"run_dir={tmp_path}/run"]
    best, last = tmp_path / "run" / BEST, tmp_path / "run" / LAST
    run_until_written(BEST, 2 * 14, words, monkeypatch)
    kept = torch.load(last, weights_only=True)
    for record in (kept[PAYLOAD]["best"], *kept[PAYLOAD]["records"]):
        record["valid_nll"] = 0.1  # better than the epoch will be
    torch.save(kept, last)
    run(words)
    epoch = json.loads((tmp_path / "run" / "result.json").read_text())["best_epoch"]
    assert epoch > 1
    assert torch.load(best, weights_only=True)["global_step"] == epoch * 14


def test_a_run_that_goes_on_in_another_precision_says_so(
    text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*text, *COMMON, f"run_dir={tmp_path}/run"]
    original, in_bf16 = RunKeeper.on_train_epoch_end, multiplies_in(torch.bfloat16)

    def cut(self: RunKeeper, trainer: Any, *args: Any) -> None:
        original(self, trainer, *args)
        raise Killed

    for place, precision in enumerate(("fp32", "bf16", "bf16")):
        with monkeypatch.context() as patch:
            patch.setattr("hornn.network.resolve_precision", lambda *_, kind=precision: kind)
            if place < 2:
                patch.setattr(RunKeeper, "on_train_epoch_end", cut)
                with pytest.raises(Killed):
                    run(words)
            else:
                run(words)
        said = capsys.readouterr().out
        assert ("the output layer was in fp32 so far" in said) == (place == 1)
        assert ("the time loop was in fp32 so far" in said) == (place == 1 and in_bf16)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["dtype"]["output_layer_in_training"] == "fp32, then bf16"
    assert [start["output_layer"] for start in result["starts"]] == ["fp32", "bf16", "bf16"]
    assert result["dtype"]["time_loop_in_training"] == ("fp32, then bf16" if in_bf16 else "fp32")


def test_a_resumed_run_diverges_where_it_would_have(
    text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The updates in a row whose loss was too high are counted across the cut."""
    words = ["model=lstm", "optimizer=adamw", "optimizer.lr=1000", "optimizer.weight_decay=0"]
    overrides = [*text, "model.hidden_size=6", "logger=csv", "trainer.enable_progress_bar=false"]
    # in fp16 logits of such weights are not even finite
    overrides += [*words, "trainer.max_epochs=20", "network.precision=fp32"]
    whole, cut = (f"run_dir={tmp_path / name}" for name in ("whole", "cut"))
    with pytest.raises(ValueError, match="for 100 updates in a row") as expected:
        run([*overrides, whole])
    original = RunKeeper.on_train_epoch_end

    def patched(self: RunKeeper, trainer: Any, *args: Any) -> None:
        original(self, trainer, *args)
        if trainer.current_epoch == 3:
            raise Killed

    monkeypatch.setattr(RunKeeper, "on_train_epoch_end", patched)
    with pytest.raises(Killed):
        run([*overrides, cut])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="for 100 updates in a row") as found:
        run([*overrides, cut])
    assert str(found.value) == str(expected.value)


def test_a_run_goes_on_where_the_trainer_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is taken up while the network is still on the CPU, also where it is trained elsewhere."""
    network = SequenceModel([5, 3, 2], partial(Lstm, hidden_size=4))
    module = TruncatedBptt(network, partial(MomentumSGD, lr=0.1), Constant(), bptt_window=2)
    module.states["train"], module.window = network.initial_state(3), [torch.zeros(1, 3, dtype=torch.int64)]
    there = SimpleNamespace(root_device=torch.device("meta"))
    trainer = SimpleNamespace(global_rank=0, world_size=1, strategy=there)
    monkeypatch.setattr(TruncatedBptt, "trainer", trainer)
    module.carry_on(module.carried())
    (state,) = module.states["train"]
    assert {tensor.device.type for tensor in (*state, *module.window)} == {"meta"}


def test_a_buffer_that_counts_is_part_of_a_checkpoint() -> None:
    """A cell may keep whole numbers or truth values beside its weights, which are in fp32."""
    cell = Lstm(3, 4)
    cell.register_buffer("period", torch.arange(4))
    none = {"records": [], "starts": [], "stopped": False, "seconds": 0.0, "schedule": {}, "best": None}
    checkpoint = {PAYLOAD: none, "loops": {}, "optimizer_states": [{}], "state_dict": cell.state_dict()}
    check_whole(Path(LAST), checkpoint, cell)
    for name, weight in cell.state_dict().items():
        other = {**checkpoint, "state_dict": {**cell.state_dict(), name: weight.half()}}
        kind = "int64" if name == "period" else "float32"
        with pytest.raises(ValueError, match=f"holds {name} as float16, a run keeps it in {kind}: train it"):
            check_whole(Path(LAST), other, cell)


@pytest.mark.slow
def test_resume_after_sigkill_in_mid_epoch(text: list[str], tmp_path: Path, forked_python: str) -> None:
    overrides = [*text, *COMMON, "trainer.max_epochs=20", "schedule.max_falls=null", "checkpoint_every=5"]
    run([*overrides, f"run_dir={tmp_path / 'whole'}"])

    cut = tmp_path / "cut"
    command = [forked_python, "src/train.py", *settled([*overrides, f"run_dir={cut}"])]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=dict(os.environ))
    last = cut / "last.ckpt"
    while not last.exists() or torch.load(last, weights_only=True)["global_step"] <= 14:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reached = torch.load(last, weights_only=True)["global_step"]
    assert 14 < reached < 20 * 14
    assert not (cut / "result.json").exists()

    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert_same(tmp_path / "whole", cut)
    result = json.loads((cut / "result.json").read_text())
    first, second = result["starts"]
    assert first["started"] <= second["started"]
    assert result["commit"] == second["commit"] == first["commit"]
    assert result["wall_seconds"] == first["seconds"] + second["seconds"]


def test_averages_come_back_too_where_the_rate_falls_at_a_new_best_epoch(
    text: list[str], tmp_path: Path
) -> None:
    averaged = [
        "optimizer=asgd",
        "optimizer.lr=1",
        "optimizer.start=3",
        "schedule=halve_on_plateau",
        "trainer.max_epochs=2",
    ]
    run([*text, *COMMON, *averaged, "schedule.threshold=10", f"run_dir={tmp_path / 'run'}"])
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["best_epoch"] == 2
    best, last = (
        torch.load(tmp_path / "run" / name, weights_only=True)["state_dict"] for name in (BEST, LAST)
    )
    assert all(torch.equal(best[key], last[key]) for key in best)
