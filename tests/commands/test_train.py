"""train.py as a user meets it: what it prints, what it leaves."""

import csv
import fcntl
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch

from commands.outcomes import contents, result_of
from hornn.data.base import Chunk
from hornn.kernels.reduced import multiplies_in
from hornn.module import TruncatedBptt
from hornn.optim.divergence import DivergenceError
from hornn.run.train import describe_divergence
from outcome import Command
from small_text import SMALL, write_text

PROMISED = (
    *(
        "schema_version",
        "status",
        "choices",
        "where",
        "overrides",
        "seed",
        "num_parameters",
        "valid_ppl",
        "test_ppl",
        "epochs",
    ),
    *("seconds_per_epoch", "tokens_per_second", "peak_memory_mb", "name"),
    *(
        "metrics",
        "versions",
        "commit",
        "dirty",
        "device",
        "dtype",
        "backend",
        "wall_seconds",
        "corpus",
        "config",
    ),
)


@pytest.fixture(scope="module")
def finished(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on the small corpus, which no test changes."""
    folder = tmp_path_factory.mktemp("finished")
    done = command("train", *write_text(folder), *SMALL, f"run_dir={folder / 'run'}")
    assert done.code == 0, done.err
    return folder / "run"


def test_a_run_leaves_what_was_promised(finished: Path) -> None:
    result = result_of(finished)
    assert [key for key in PROMISED if key not in result] == []
    assert (result["status"], result["choices"]["model"], result["choices"]["data"]) == (
        "completed",
        "hornn_fofe",
        "files",
    )
    assert (result["schema_version"], result["seed"], result["epochs"]) == (2, 1, 2)
    assert result["num_parameters"] == 9 * 6 + 6 * 6 + 3 * 6 * 6 + 6 * 9  # a to g, <eos> and <unk>
    assert result["corpus"]["tokens"] == {"train": 31 * 9, "valid": 9 * 9, "test": 9 * 9}
    assert result["corpus"]["vocab_size"] == 9
    assert result["evaluation"] == {"batch_size": 2, "seq_len": 5, "state": "carried", "test_tokens": 81}
    assert len(result["name"]) == 10
    assert 1 < result["test_ppl"] < 20
    assert result["tokens_per_second"] > 0
    assert result["peak_memory_mb"] > 10
    assert result["wall_seconds"] > 2 * result["seconds_per_epoch"] > 0
    assert set(result["versions"]) >= {"python", "torch", "lightning", "hydra-core", "hornn"}
    for record in result["metrics"]:
        assert record["train_ppl"] == pytest.approx(math.exp(record["train_nll"]), rel=1e-12)
        assert record["valid_ppl"] == pytest.approx(math.exp(record["valid_nll"]), rel=1e-12)
    assert result["valid_ppl"] == min(record["valid_ppl"] for record in result["metrics"])
    assert [record["step"] for record in result["metrics"]] == [14, 28]
    files = {path.name for path in finished.iterdir()} - {".lock", "csv"}
    assert files == {"result.json", "metrics.csv", "best.ckpt", "last.ckpt", "config.yaml"}


def test_metrics_csv_holds_the_records_of_the_result(finished: Path) -> None:
    with (finished / "metrics.csv").open() as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert rows == result_of(finished)["metrics"]


def test_a_learned_factor_is_recorded_at_every_epoch(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    assert (
        command("train", *small, "model.learn_alpha=true", "model.alpha=0.5", f"run_dir={tmp_path}").code == 0
    )
    first, last = (record["alpha"] for record in result_of(tmp_path)["metrics"])
    assert 0 < first < 1
    assert len({0.5, first, last}) == 3
    weights = torch.load(tmp_path / "last.ckpt", weights_only=True)["state_dict"]
    beta = next(value for name, value in weights.items() if name.endswith("beta"))
    assert last == pytest.approx(torch.sigmoid(beta).item())
    with (tmp_path / "metrics.csv").open() as file:
        assert [float(row["alpha"]) for row in csv.DictReader(file)] == [first, last]


def test_the_checkpoint_needs_no_code_of_its_own(finished: Path) -> None:
    for name in ("best.ckpt", "last.ckpt"):
        assert torch.load(finished / name, weights_only=True)["hornn"]["vocabulary"]["words"][-1] == "<unk>"


def test_a_finished_run_is_refused_and_replaced_on_demand(
    command: Command, run_dir: Path, small: list[str]
) -> None:
    before = contents(run_dir)
    again = command("train", *small, f"run_dir={run_dir}")
    assert again.code == 2
    assert again.err.count("\n") == 1
    assert again.err.endswith(": overwrite=true replaces it\n")
    for word, told in (
        ("seed=2", "seed is 1 there and 2 here"),
        ("optimizer.lr=0.25", "optimizer.lr is 0.1 there and 0.25 here"),
    ):
        other = command("train", *small, f"run_dir={run_dir}", word)
        assert other.code == 2
        assert f"is another one ({told}): give another run_dir, or overwrite=true to replace it" in other.err
    more = command("train", *small, f"run_dir={run_dir}", "trainer.max_epochs=9")
    assert (
        f"and 9 here): continue_from={run_dir} with another run_dir goes on from it; or give another"
        in more.err
    )
    fewer = command("train", *small, f"run_dir={run_dir}", "trainer.max_epochs=1")
    assert "and 1 here): give another run_dir, or overwrite=true to replace it" in fewer.err
    assert contents(run_dir) == before
    assert command("train", *small, f"run_dir={run_dir}", "overwrite=true", "seed=2").code == 0
    assert result_of(run_dir)["seed"] == 2


def test_the_same_seed_gives_the_same_run(
    command: Command, finished: Path, small: list[str], tmp_path: Path
) -> None:
    for name, seed in (("same", 1), ("other", 2)):
        assert command("train", *small, f"run_dir={tmp_path / name}", f"seed={seed}").code == 0
    losses = [
        result_of(folder)["metrics"][0]["train_nll"]
        for folder in (finished, tmp_path / "same", tmp_path / "other")
    ]
    assert losses[0] == losses[1] != losses[2]


def test_a_run_in_progress_is_left_alone(command: Command, small: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = command("train", *small, f"run_dir={tmp_path / 'run'}", "overwrite=true")
    assert second.code == 75
    assert "another process is working on" in second.err
    assert second.err.count("\n") == 1
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_run_that_diverges_says_so(command: Command, small: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [*small, f"run_dir={run}", "model=rnn", "model.activation=relu", "optimizer.lr=1000"]
    code, _, err = command("train", *words)
    assert code == 2
    assert err.count("\n") == 1
    for part in ("diverged at update ", "nats per token", "largest gradient norm"):
        assert part in err
    clip, max_norm, activation = (
        "optimizer.clip_mode=norm with optimizer.clip=1",
        "optimizer.max_norm=1",
        "model.activation=sigmoid",
    )
    assert err.endswith(f"Try an optimizer.lr below 1000, or {clip}, or {max_norm}, or {activation}\n")
    result = result_of(run)
    assert (result["status"], result["test_ppl"]) == ("diverged", None)
    assert result["error"] in err
    assert [key for key in PROMISED if key not in result] == []
    assert "holds a run that diverged" in command("train", *words).err


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_run_whose_features_are_infinite_diverges(
    command: Command, small: list[str], tmp_path: Path, precision: str
) -> None:
    if precision == "fp16" and not multiplies_in(torch.float16):
        pytest.skip("needs a CPU with AVX-512 FP16, and a compiler that knows it")
    words = ["model=nnlm", "model.activation=relu", "network.init_std=5e18", f"network.precision={precision}"]
    code, _, err = command("train", *small, *words, f"run_dir={tmp_path / 'run'}")
    assert code == 2
    assert "diverged at update 0: the loss is nan nats per token; no learning rate is to blame" in err
    assert err.endswith("See the equations of Nnlm and the data, or try a network.init_std below 5e+18\n")
    assert result_of(tmp_path / "run")["status"] == "diverged"


@pytest.mark.parametrize(("step", "epochs"), [("validation", 0), ("test", 2)])
def test_a_run_whose_score_is_no_number_diverges(
    command: Command, small: list[str], tmp_path: Path, step: str, epochs: int
) -> None:
    def score(module: TruncatedBptt, batch: Chunk, batch_idx: int) -> None:
        nll = torch.tensor(math.nan, dtype=torch.float64)
        module.tally("valid" if step == "validation" else step).add(nll, batch.count)

    with patch.object(TruncatedBptt, f"{step}_step", score):
        code, _, err = command("train", *small, f"run_dir={tmp_path / 'run'}")
    assert code == 2
    assert f"the {step} loss is nan" in err
    result = result_of(tmp_path / "run")
    assert (result["status"], result["epochs"]) == ("diverged", epochs)


def test_a_run_that_diverges_is_not_told_to_try_what_it_has(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    """Nor an option that its model or optimizer lacks: AdamW with a clip of 0.25, an LSTM."""
    words = [*small, f"run_dir={tmp_path / 'run'}", "model=lstm", "optimizer=adamw", "optimizer.lr=1000"]
    assert command("train", *words, "trainer.max_epochs=10").err.endswith(
        ". Try an optimizer.lr below 1000\n"
    )


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [({"rate": 1.0}, "a lower learning rate"), ({"lr": 1.0, "clip": 2.0}, "an optimizer.lr below 1")],
)
def test_an_optimizer_of_ones_own_may_have_other_keys(keys: dict[str, float], remedy: str) -> None:
    """And measure no gradient. Its run that diverges is described as any other."""
    module = SimpleNamespace(global_step=7, grad_norms=[])
    training: Any = SimpleNamespace(module=module, keeper=SimpleNamespace(records=[{"max_grad_norm": 0.0}]))
    said = describe_divergence(DivergenceError("why"), training, {"optimizer": keys, "model": {}})
    assert said == f"training diverged at update 7: why. Try {remedy}"


def test_max_steps_ends_training_in_mid_epoch(command: Command, small: list[str], tmp_path: Path) -> None:
    assert command("train", *small, "trainer.max_steps=20", f"run_dir={tmp_path / 'run'}").code == 0
    result = result_of(tmp_path / "run")
    assert [record["step"] for record in result["metrics"]] == [14, 20]
    assert result["epochs"] == pytest.approx(20 / 14, abs=1e-4)
    seconds = sum(record["seconds"] for record in result["metrics"])
    assert result["seconds_per_epoch"] == pytest.approx(seconds / (20 / 14), rel=1e-9)
    assert torch.load(tmp_path / "run" / "last.ckpt", weights_only=True)["global_step"] == 20


def test_the_default_folder_is_named_by_the_run(
    command: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("train", *small, "model=lstm", "seed=3").code == 0
    (path,) = tmp_path.glob("outputs/**/result.json")
    digest = result_of(path.parent)["name"]
    assert path.parent == tmp_path / "outputs" / "lstm" / "files" / digest / "seed=3"


def test_a_path_may_hold_an_equals_sign(command: Command, small: list[str], tmp_path: Path) -> None:
    """As `outputs/<model>/<data>/<hash>/seed=1` does."""
    run_dir = tmp_path / "seed=1"
    assert command("train", *small, f"run_dir={run_dir}").code == 0
    text = tmp_path / "n=1.txt"
    text.write_text("a b\n")
    done = command("evaluate", f"checkpoint={run_dir / 'best.ckpt'}", f"text={text}")
    assert (done.code, done.err) == (0, "")
    assert command("generate", f"checkpoint='{run_dir / 'best.ckpt'}'", "length=1").code == 0


def test_paths_and_words_are_shown_as_they_are(
    command: Command, text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands in brackets, which may mean a style elsewhere."""
    run = tmp_path / "RB[" / "a]"
    words = ["logger=csv", "model=kn", "callbacks=[early_stopping,layer_norms]", f"run_dir='{run}'"]
    monkeypatch.setenv("HORNN_SWEEP", "of a table, which says some words to all its rows")
    done = command("train", *text, *words)
    assert (done.code, done.err) == (0, "")
    assert f"  writes to {run}\n" in done.out
    assert f"{run / 'result.json'}\n" in done.out
    assert "without effect here: callbacks=[early_stopping,layer_norms]\n" in done.out
    network = ["logger=csv", "model=rnn", "model.hidden_size=6", "trainer.max_steps=2"]
    done = command("train", *text, *network, f"run_dir='{run}-rnn'")
    assert (done.code, done.err) == (0, "")
    assert f"  writes to {run}-rnn\n" in done.out


def test_what_cannot_change_the_result_does_not_change_the_folder(
    command: Command, finished: Path, small: list[str], tmp_path: Path
) -> None:
    digest = result_of(finished)["name"]
    for name, setting, same in (
        ("a", "checkpoint_every=3", True),
        ("b", "trainer.log_every_n_steps=2", True),
        ("c", "optimizer.lr=0.5", False),
    ):
        assert command("train", *small, setting, f"run_dir={tmp_path / name}").code == 0
        assert (result_of(tmp_path / name)["name"] == digest) is same


def test_ctrl_c_before_hydra_has_begun_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hornn.commands.train.register", interrupted)
    assert command("train") == (130, "", "error: interrupted; the same command continues\n")
