"""The callbacks of conf/callbacks in a training: what they log, what they change, and which of them name a run."""

import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import hornn
from commands.outcomes import refusal, result_of
from hornn.data.base import SPLITS
from hornn.data.cache import TokenCache
from hornn.data.ptb import CHECKSUMS, PennTreebank
from hornn.data.text import TextData
from hornn.run.callbacks import Samples, WordFrequency, build_callbacks, dense
from outcome import Command

ROOT = Path(__file__).parents[2]
MINE = """
from lightning.pytorch.callbacks import Callback


class Halt(Callback):
    def __init__(self, at=5):
        self.at = at

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == self.at:
            trainer.should_stop = True
"""


def logged(run_dir: Path) -> dict[str, list[float]]:
    """Column -> its numbers, of the csv logger's file."""
    with next(run_dir.glob("csv/*/metrics.csv")).open() as file:
        rows = list(csv.DictReader(file))
    return {key: [float(row[key]) for row in rows if row[key]] for key in rows[0]}


def test_watching_changes_no_number_and_no_name(train: Command, tmp_path: Path) -> None:
    watching = "callbacks=[layer_norms,samples,snapshots,word_frequency]"
    assert train("plain").code == 0
    done = train("watched", watching, "trainer.log_every_n_steps=1", "trainer.profiler=simple")
    assert done.code == 0, done.err
    plain, watched = result_of(tmp_path / "plain"), result_of(tmp_path / "watched")
    assert watched["name"] == plain["name"]
    assert (watched["valid_ppl"], watched["test_ppl"]) == (plain["valid_ppl"], plain["test_ppl"])
    weights = [
        torch.load(tmp_path / run / "last.ckpt", weights_only=True)["state_dict"]
        for run in ("plain", "watched")
    ]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    kept = torch.load(tmp_path / "watched" / "epoch-1.ckpt", weights_only=True)["state_dict"]
    assert kept.keys() == weights[1].keys()
    assert any(not torch.equal(kept[key], weights[1][key]) for key in kept), "it trained a second epoch"


def test_layer_norms_are_those_of_the_optimizer(train: Command, tmp_path: Path) -> None:
    assert (
        train("run", "callbacks=layer_norms", "trainer.log_every_n_steps=1", "trainer.max_steps=3").code == 0
    )
    with next((tmp_path / "run").glob("csv/*/metrics.csv")).open() as file:
        rows = list(csv.DictReader(file))
    of_parts, of_whole = (
        [row["step"] for row in rows if row[key]] for key in ("grad_norm/head.W_out", "train/grad_norm")
    )
    assert of_parts == of_whole == ["1", "2", "3"], "both under the number of the update that they belong to"
    columns = logged(tmp_path / "run")
    whole = columns["train/grad_norm"]
    parts = [numbers for key, numbers in columns.items() if key.startswith("grad_norm/")]
    assert len(parts) == len([key for key in columns if key.startswith("weight_norm/")]) > 3
    for step, expected in enumerate(whole):
        # Some are in bf16.
        assert sum(part[step] ** 2 for part in parts) ** 0.5 == pytest.approx(expected, rel=1e-2)


@pytest.mark.thorough
def test_classes_of_word_frequency_make_up_the_test(train: Command, tmp_path: Path) -> None:
    done = train(
        "run", "callbacks=word_frequency", "callbacks.word_frequency.bounds=[3,30]", "logger=wandb_offline"
    )
    assert done.code == 0, done.err
    (table,) = (tmp_path / "run").rglob("ppl_by_frequency*.json")
    rows = json.loads(table.read_text())["data"]
    result = result_of(tmp_path / "run")
    assert sum(tokens for _, tokens, _ in rows) == result["evaluation"]["test_tokens"]
    nll = sum(tokens * torch.tensor(ppl).log() for _, tokens, ppl in rows)
    assert float(nll / result["evaluation"]["test_tokens"]) == pytest.approx(
        float(torch.tensor(result["test_ppl"]).log()), abs=1e-3
    )
    assert "times" in done.out


def test_samples_are_a_table_of_the_best_epochs(train: Command, tmp_path: Path) -> None:
    assert train("run", "callbacks=samples", "callbacks.samples.length=4", "logger=wandb_offline").code == 0
    last = max((tmp_path / "run").rglob("samples*.json"), key=lambda path: len(path.read_text()))
    rows = json.loads(last.read_text())["data"]
    assert {epoch for epoch, _, _ in rows} <= {1, 2}
    assert len(rows) in (3, 6)
    assert all(len(text.split()) <= 4 for *_, text in rows)
    result = result_of(tmp_path / "run")
    assert result["samples"]["texts"] == [text for *_, text in rows[-3:]], "a result keeps the best epoch's"
    assert result["samples"]["epoch"] == result["best_epoch"]


def test_a_result_keeps_the_texts_of_its_best_epoch_alone() -> None:
    """Also of a run that is continued with another number of texts."""
    samples = Samples(num_samples=5)
    assert samples.kept == {}
    samples.load_state_dict({"rows": [[epoch, 9.0, f"{epoch} {n}"] for epoch in (1, 2) for n in range(3)]})
    assert samples.kept["epoch"] == 2
    assert samples.kept["texts"] == ["2 0", "2 1", "2 2"]


def test_epochs_whose_weights_are_not_kept_are_named(train: Command, tmp_path: Path) -> None:
    done = train("run", "callbacks=snapshots", "callbacks.snapshots.epochs=[1,3]")
    assert done.code == 0
    assert "callbacks.snapshots kept no weights of epochs [3]: training did not come there\n" in done.out
    assert [path.name for path in (tmp_path / "run").glob("epoch-*")] == ["epoch-1.ckpt"]


def test_samples_of_a_run_that_never_improves_are_of_its_first_epoch(train: Command, tmp_path: Path) -> None:
    """With this seed the score, rounded to fp32, is lower than the score."""
    words = [
        "optimizer.lr=1e-30",
        "optimizer.weight_decay=0",
        "schedule=constant",
        "trainer.max_epochs=3",
        "seed=4",
    ]
    assert train("run", "callbacks=samples", "callbacks.samples.length=4", *words).code == 0
    result = result_of(tmp_path / "run")
    assert result["samples"]["epoch"] == result["best_epoch"] == 1


def test_a_training_that_has_diverged_writes_no_samples(train: Command, tmp_path: Path) -> None:
    """The validation loss is no number after the only update, whose own loss is one."""
    words = ["optimizer.lr=1e38", "optimizer.clip=null", "trainer.max_steps=1"]
    said = refusal(train("run", "callbacks=samples", *words))
    assert said.startswith("error: training diverged at update 1: the validation loss is nan")
    assert result_of(tmp_path / "run")["status"] == "diverged"


def test_a_prompt_that_no_text_of_the_corpus_could_hold_is_refused_before_the_training(
    tmp_path: Path,
) -> None:
    """Characters of Penn Treebank have no `<unk>`."""
    folder = tmp_path / "ptb"
    folder.mkdir()
    for split in SPLITS:
        (folder / f"ptb.{split}.txt").write_text(" the company said\n" * 9)
    data = TextData(PennTreebank(tmp_path, "char", "", CHECKSUMS), 2, 5, 2, tmp_path)
    TokenCache(tmp_path, data.corpus).write()
    data.setup()
    node = {"_target_": "hornn.run.callbacks.Samples", "prompt": "the company\nsaid"}
    assert len(build_callbacks({"samples": node}, data)) == 1
    with pytest.raises(
        ValueError, match=r"^callbacks\.samples\.prompt: 'T' is none of the 15 symbols of the"
    ):
        build_callbacks({"samples": {**node, "prompt": "The company"}}, data)


def test_an_early_stop_ends_the_run_and_names_it(train: Command, tmp_path: Path) -> None:
    words = ["trainer.max_epochs=4", "callbacks=early_stopping", "callbacks.early_stopping.min_delta=1000"]
    done = train("run", *words, "callbacks.early_stopping.patience=2")
    assert done.code == 0, done.err
    assert "ended early: Monitored metric valid/ppl did not improve" in done.out
    result = result_of(tmp_path / "run")
    assert (result["epochs"], result["status"]) == (3, "completed")
    assert result["config"]["callbacks"]["early_stopping"]["patience"] == 2
    assert train("without", "trainer.max_epochs=4").code == 0
    assert result_of(tmp_path / "without")["name"] != result["name"]
    assert refusal(train("run", *words, "callbacks.early_stopping.patience=2"))  # it is finished


def test_an_early_stop_bears_a_perplexity_beyond_fp32(train: Command, tmp_path: Path) -> None:
    """Beyond 88.7 nats a word, as an untrained network with large weights has."""
    words = ["network.init_std=300", "network.precision=fp32", "trainer.max_epochs=2", "optimizer.lr=1e-9"]
    assert train("run", *words, "callbacks=early_stopping").code == 0
    result = result_of(tmp_path / "run")
    assert result["valid_nll"] > 88.8
    assert result["epochs"] == 2


def test_a_callback_of_a_users_own(train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halting.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = train("run", "+callbacks.halt._target_=halting.Halt", "callbacks.halt.at=6")
    sys.modules.pop("halting")
    assert "ended early: a callback asked for it\n" in done.out
    assert done.code == 0, done.err
    result = result_of(tmp_path / "run")
    assert result["metrics"][-1]["step"] == 6
    assert result["config"]["callbacks"] == {"halt": {"at": 6, "class": "halting.Halt"}}


@pytest.mark.each(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trainer.callbacks=x"], "did you mean 'callbacks'?"),
        (["+trainer.callbacks=[x]"], "did you mean 'callbacks'?"),
        (["trainer.logger=true"], "did you mean 'logger'?"),
        (["callbacks=earlystop"], "did you mean 'early_stopping'?"),
        (
            ["callbacks=early_stopping", "callbacks.early_stopping.patienc=1"],
            "did you mean 'callbacks.early_stop",
        ),
        (["callbacks=early_stopping", "callbacks.early_stopping.monitor=loss"], "valid/nll or valid/ppl"),
        (
            ["callbacks=early_stopping", "callbacks.early_stopping.patience=-1"],
            "patience must be a number of epochs",
        ),
        (
            ["callbacks=early_stopping", "callbacks.early_stopping.min_delta=nan"],
            "min_delta must be a finite number",
        ),
        (["callbacks=early_stopping", "callbacks.early_stopping.mode=max"], "mode must be min"),
        (["callbacks=word_frequency", "callbacks.word_frequency.bounds=[9,3]"], "must be counts that rise"),
        (
            ["callbacks=word_frequency", "callbacks.word_frequency.bounds=5"],
            "must be counts that rise, got 5",
        ),
        (["callbacks=word_frequency", "callbacks.word_frequency.bounds=[1.5,2]"], "must be counts that rise"),
        (["+callbacks.mine._target_=collections.Counter"], "must name a callback of Lightning's"),
        (["+callbacks.mine._target_=nowhere.Mine"], "No module named 'nowhere'"),
        (["+callbacks.mine=3"], "callbacks.mine"),
        (
            ["+callbacks.ema._target_=lightning.pytorch.callbacks.EMAWeightAveraging"],
            "callbacks.ema averages weights behind the back of best.ckpt",
        ),
    ],
)
def test_refused_callbacks(train: Command, words: list[str], said: str) -> None:
    assert said in refusal(train("run", *words))


def test_a_package_that_is_missing_is_named_with_its_installation(
    train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hornn.checks.find_spec", lambda package: None)
    for words in ("callbacks=device_stats", "logger=tensorboard", "logger=[csv,mlflow]"):
        assert ": pip install " in refusal(train("run", words))


def test_the_profilers_report_is_shown(train: Command) -> None:
    done = train("run", "trainer.profiler=simple", "trainer.max_steps=2")
    assert done.code == 0, done.err
    assert "Profiler Report" in done.out
    assert "run_training_batch" in done.out


def test_a_word_is_of_the_class_that_its_count_begins() -> None:
    callback, module = WordFrequency([3, 30]), SimpleNamespace(device=torch.device("cpu"))
    callback.data = SimpleNamespace(vocabulary=SimpleNamespace(counts=[30, 29, 3, 2]))  # type: ignore[assignment]
    callback.on_test_start(None, module)  # type: ignore[arg-type]
    module.last_nll = torch.tensor([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]])
    batch = SimpleNamespace(targets=torch.tensor([[0, 1], [2, 3], [-1, 3]]))
    callback.on_test_batch_end(None, module, None, batch)  # type: ignore[arg-type]
    assert callback.sums.tolist() == [[40.0, 6.0, 1.0], [2.0, 2.0, 1.0]]


def test_word_frequency_adds_up_all_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    callback = WordFrequency([3])
    callback.sums = torch.tensor([[0.0, 4.0], [0.0, 2.0]], dtype=torch.float64)
    ranks = {"mean": 1, "sum": 3}  # as if three ranks had the same
    strategy = SimpleNamespace(reduce=lambda sums, reduce_op="mean": ranks[reduce_op] * sums)
    callback.on_test_end(SimpleNamespace(strategy=strategy, loggers=[], is_global_zero=True), None)  # type: ignore[arg-type]
    assert "7.39 on 6 tokens that training has 3 or more times" in capsys.readouterr().out


def test_snapshots_and_samples_are_of_averaged_weights(train: Command, tmp_path: Path) -> None:
    """The training goes on with its own weights, as if nobody had looked at the averages."""
    words = ["schedule=constant", "optimizer=asgd", "optimizer.lr=1", "optimizer.start=3"]
    watching = [
        "callbacks=[snapshots,samples]",
        "callbacks.snapshots.epochs=[1,2]",
        "callbacks.samples.length=4",
    ]
    assert train("plain", *words).code == train("watched", *words, *watching).code == 0
    plain, watched = result_of(tmp_path / "plain"), result_of(tmp_path / "watched")
    assert watched["test_ppl"] == plain["test_ppl"]
    folder = tmp_path / "watched"
    best, kept = (
        torch.load(folder / name, weights_only=True)["state_dict"]
        for name in ("best.ckpt", f"epoch-{watched['best_epoch']}.ckpt")
    )
    assert all(torch.equal(best[key], kept[key]) for key in best)
    found = hornn.load(folder / "best.ckpt").generate(length=4, temperature=0.8, num_samples=3, seed=1)
    assert watched["samples"]["texts"] == found


def test_bounds_of_counts_rise() -> None:
    for bounds in ([0, 3], [3, 3], [3, 2]):
        with pytest.raises(ValueError, match="bounds must be counts that rise"):
            WordFrequency(bounds)


def test_layer_norms_are_euclidean(train: Command, tmp_path: Path) -> None:
    words = ["callbacks=layer_norms", "trainer.log_every_n_steps=1", "trainer.max_steps=2"]
    assert train("run", *words, "optimizer.lr=1e-30", "optimizer.weight_decay=0").code == 0
    weights = torch.load(tmp_path / "run" / "last.ckpt", weights_only=True)["state_dict"]
    norms = {key: found for key, found in logged(tmp_path / "run").items() if key.startswith("weight_norm/")}
    assert norms
    for key, found in norms.items():
        expected = float(weights[f"network.{key.removeprefix('weight_norm/')}"].norm())
        assert found[0] == pytest.approx(expected, rel=1e-4), key


def test_layer_norms_are_logged_with_the_losses(train: Command, tmp_path: Path) -> None:
    words = ["callbacks=layer_norms", "trainer.log_every_n_steps=3", "trainer.max_steps=7"]
    assert train("run", *words).code == 0
    with next((tmp_path / "run").glob("csv/*/metrics.csv")).open() as file:
        rows = list(csv.DictReader(file))
    keys = ("train/grad_norm", "weight_norm/head.W_out", "grad_norm/head.W_out")
    steps = [[row["step"] for row in rows if row[key]] for key in keys]
    assert len(steps[0]) > 1
    assert steps[0] == steps[1] == steps[2]


def test_an_epoch_that_training_ends_with_is_kept_and_not_missed(train: Command, tmp_path: Path) -> None:
    done = train("run", "callbacks=snapshots", "callbacks.snapshots.epochs=[2,3]")
    assert "kept no weights of epochs [3]: training" in done.out
    assert (tmp_path / "run" / "epoch-2.ckpt").exists()


def test_a_sparse_gradient_adds_up_what_is_of_one_row() -> None:
    rows, values = torch.tensor([[0, 2, 0]]), torch.tensor([[1.0], [4.0], [2.0]])
    gradient = torch.sparse_coo_tensor(rows, values, (3, 1), check_invariants=True)
    assert dense(gradient).norm() == 5
