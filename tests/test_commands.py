"""The three commands as a user meets them: what they print, what they leave, what they give back."""

import csv
import fcntl
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

Command = Callable[..., Any]
PROMISED = (
    *(
        "schema_version",
        "status",
        "model",
        "data",
        "seed",
        "num_parameters",
        "valid_ppl",
        "test_ppl",
        "epochs",
    ),
    *("seconds_per_epoch", "tokens_per_second", "peak_memory_mb", "config_hash"),
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


def result_of(run_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / "result.json").read_text())
    return found


@pytest.fixture
def run_dir(command: Command, small: list[str], tmp_path: Path) -> Path:
    """A finished run on the small corpus."""
    done = command("train", *small, f"run_dir={tmp_path / 'run'}")
    assert done.code == 0, done.err
    return tmp_path / "run"


def contents(run_dir: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}


# -- train ---------------------------------------------------------------------------------------------------


def test_a_run_leaves_what_was_promised(run_dir: Path) -> None:
    result = result_of(run_dir)
    assert [key for key in PROMISED if key not in result] == []
    assert (result["status"], result["model"], result["data"]) == ("completed", "hornn_fofe", "files")
    assert (result["schema_version"], result["seed"], result["epochs"]) == (1, 1, 2)
    assert result["num_parameters"] == 9 * 6 + 6 * 6 + 3 * 6 * 6 + 6 * 9  # a to g, <eos> and <unk>
    assert result["corpus"]["tokens"] == {"train": 31 * 9, "valid": 9 * 9, "test": 9 * 9}
    assert result["corpus"]["vocab_size"] == 9
    assert result["evaluation"] == {"batch_size": 2, "seq_len": 5, "state": "carried", "test_tokens": 81}
    assert len(result["config_hash"]) == 10
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
    files = {path.name for path in run_dir.iterdir()} - {".lock", "csv"}
    assert files == {"result.json", "metrics.csv", "best.ckpt", "last.ckpt", "config.yaml"}


def test_metrics_csv_holds_the_records_of_the_result(run_dir: Path) -> None:
    with (run_dir / "metrics.csv").open() as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert rows == result_of(run_dir)["metrics"]


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


def test_the_checkpoint_needs_no_code_of_its_own(run_dir: Path) -> None:
    for name in ("best.ckpt", "last.ckpt"):
        assert torch.load(run_dir / name, weights_only=True)["hornn"]["vocabulary"]["words"][-1] == "<unk>"


def test_a_finished_run_is_refused_and_replaced_on_demand(
    command: Command, run_dir: Path, small: list[str]
) -> None:
    before = contents(run_dir)
    again = command("train", *small, f"run_dir={run_dir}")
    assert again.code == 2
    assert again.err.count("\n") == 1
    assert "overwrite=true replaces it" in again.err
    assert contents(run_dir) == before
    assert command("train", *small, f"run_dir={run_dir}", "overwrite=true", "seed=2").code == 0
    assert result_of(run_dir)["seed"] == 2


def test_the_same_seed_gives_the_same_run(
    command: Command, run_dir: Path, small: list[str], tmp_path: Path
) -> None:
    for name, seed in (("same", 1), ("other", 2)):
        assert command("train", *small, f"run_dir={tmp_path / name}", f"seed={seed}").code == 0
    losses = [
        result_of(folder)["metrics"][0]["train_nll"]
        for folder in (run_dir, tmp_path / "same", tmp_path / "other")
    ]
    assert losses[0] == losses[1] != losses[2]


def test_a_run_in_progress_is_left_alone(command: Command, small: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = command("train", *small, f"run_dir={tmp_path / 'run'}", "overwrite=true")
    assert second.code == 2
    assert "another process is working on" in second.err
    assert second.err.count("\n") == 1
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_run_that_diverges_says_so(command: Command, small: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [*small, f"run_dir={run}", "model=rnn", "model.activation=relu", "optimizer.lr=1000"]
    code, _, err = command("train", *words)
    assert code == 2
    assert err.count("\n") == 1
    for part in ("diverged at step ", "nats per token", "largest gradient norm"):
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


def test_a_run_that_diverges_is_not_told_to_try_what_it_has(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    """Nor an option that its model or optimizer lacks: AdamW with a clip of 0.25, an LSTM."""
    words = [*small, f"run_dir={tmp_path / 'run'}", "model=lstm", "optimizer=adamw", "optimizer.lr=1000"]
    assert command("train", *words, "trainer.max_epochs=10").err.endswith(
        ". Try an optimizer.lr below 1000\n"
    )


def test_max_steps_ends_training_in_mid_epoch(command: Command, small: list[str], tmp_path: Path) -> None:
    assert command("train", *small, "trainer.max_steps=20", f"run_dir={tmp_path / 'run'}").code == 0
    result = result_of(tmp_path / "run")
    assert [record["step"] for record in result["metrics"]] == [14, 20]
    assert result["epochs"] == pytest.approx(20 / 14, abs=1e-4)
    assert torch.load(tmp_path / "run" / "last.ckpt", weights_only=True)["global_step"] == 20


def test_the_default_folder_is_named_by_the_run(
    command: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("train", *small, "model=lstm", "seed=3").code == 0
    (path,) = tmp_path.glob("outputs/**/result.json")
    digest = result_of(path.parent)["config_hash"]
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


def test_what_cannot_change_the_result_does_not_change_the_folder(
    command: Command, run_dir: Path, small: list[str], tmp_path: Path
) -> None:
    digest = result_of(run_dir)["config_hash"]
    for name, setting, same in (
        ("a", "checkpoint_every=3", True),
        ("b", "trainer.log_every_n_steps=2", True),
        ("c", "optimizer.lr=0.5", False),
    ):
        assert command("train", *small, setting, f"run_dir={tmp_path / name}").code == 0
        assert (result_of(tmp_path / name)["config_hash"] == digest) is same


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


@pytest.mark.slow
def test_the_first_command_in_a_shell(process: Command, small: list[str], tmp_path: Path) -> None:
    bar = "trainer.enable_progress_bar=true"
    code, out, err = process("train", *small, bar, f"run_dir={tmp_path / 'run'}")
    assert (code, err) == (0, "")
    for part in (
        "hornn_fofe on files: 252 parameters",
        "epoch    2",
        "unigram",
        str(tmp_path / "run" / "result.json"),
    ):
        assert part in out


# -- evaluate ------------------------------------------------------------------------------------------------


@pytest.fixture
def evaluate(command: Command, run_dir: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Figures of `evaluate.py` on the best checkpoint of the finished run."""

    def run(*words: str) -> dict[str, Any]:
        figures = tmp_path / "figures.json"
        common = [
            f"checkpoint={run_dir / 'best.ckpt'}",
            f"data.cache_dir={tmp_path / 'cache'}",
            f"result={figures}",
        ]
        done = command("evaluate", *common, *words)
        assert (done.code, done.err) == (0, "")
        found: dict[str, Any] = json.loads(figures.read_text())
        assert f"{found['perplexity']:,.2f}" in done.out
        return found

    return run


def test_evaluate_gives_the_results_of_the_run(evaluate: Command, run_dir: Path) -> None:
    result = result_of(run_dir)
    for split in ("test", "valid"):
        as_trained = evaluate(f"split={split}", "batch_size=2", "seq_len=5")
        assert as_trained["perplexity"] == pytest.approx(result[f"{split}_ppl"], rel=1e-13)
        assert evaluate(f"split={split}")["perplexity"] == pytest.approx(result[f"{split}_ppl"], rel=0.02)
    assert as_trained["tokens"] == 81
    assert as_trained["read_as"] == "2 columns, state carried"


def test_dynamic_evaluation_is_added_to_the_result(
    evaluate: Command, command: Command, run_dir: Path, tmp_path: Path
) -> None:
    """At the rate that validation finds best, from the trained weights whatever was tried before."""
    copy = tmp_path / "copy"
    shutil.copytree(run_dir, copy)
    alone = {lr: evaluate("split=valid", f"dynamic_lr={lr}", "seq_len=5")["perplexity"] for lr in (1e-9, 0.1)}
    best = min(alone, key=lambda lr: alone[lr])
    words = ["dynamic_lr=[1e-9,0.1,1e9]", "seq_len=5", "record=true", f"data.cache_dir={tmp_path}"]
    done = command("evaluate", f"checkpoint={copy / 'best.ckpt'}", *words)
    assert done.code == 0, done.err
    before, after = (json.loads((folder / "result.json").read_text()) for folder in (run_dir, copy))
    dynamic = after.pop("dynamic")
    assert after == before
    assert dynamic["lr"] == best
    assert dynamic["valid_ppl"] == pytest.approx(alone[best], rel=1e-6)
    assert dynamic["valid_ppl_by_lr"]["0.1"] == pytest.approx(alone[0.1], rel=1e-6)
    test = evaluate("split=test", f"dynamic_lr={best}", "seq_len=5")["perplexity"]
    assert dynamic["test_ppl"] == pytest.approx(test, rel=1e-6)
    assert {"commit", "dirty", "seq_len"} <= dynamic.keys()

    words[0] = "dynamic_lr=1"
    done = command("evaluate", f"checkpoint={copy / 'best.ckpt'}", *words)
    assert done.code == 0, done.err
    assert json.loads((copy / "result.json").read_text())["dynamic"]["lr"] == 1.0

    strange = tmp_path / "strange"
    shutil.copytree(run_dir, strange)
    shutil.copy(strange / "best.ckpt", copy / "other.ckpt")
    refused = command("evaluate", f"checkpoint={copy / 'other.ckpt'}", *words)
    assert refused.code != 0
    assert "is not the result of the finished run of" in refused.err

    (strange / "result.json").write_text(json.dumps({**before, "seed": before["seed"] + 1}))
    (copy / "result.json").write_text((copy / "result.json").read_text().replace('"completed"', '"diverged"'))
    for path, message in (
        (copy / "best.ckpt", "is not the result of the finished run of"),
        (strange / "best.ckpt", "is not the result of the finished run of"),
        (tmp_path / "best.ckpt", f"record=true adds to {tmp_path / 'result.json'}, which cannot be read"),
    ):
        if not path.exists():
            shutil.copy(run_dir / "best.ckpt", path)
        done = command("evaluate", f"checkpoint={path}", *words)
        assert done.code != 0
        assert message in done.err


def test_evaluate_counts_what_the_vocabulary_lacks(evaluate: Command, tmp_path: Path) -> None:
    text = tmp_path / "own.txt"
    text.write_text("a b zz\n\nc \N{SNOWMAN} zz\n", "utf-8")
    figures = evaluate(f"text={text}")
    assert (figures["tokens"], figures["out_of_vocabulary"]) == (4 + 1 + 4, 3)
    assert figures["perplexity"] == pytest.approx(2 ** figures["bits_per_token"], rel=1e-12)


def test_sentence_scores_add_up(evaluate: Command, tmp_path: Path) -> None:
    text, scores = tmp_path / "nbest.txt", tmp_path / "scores.jsonl"
    text.write_text("a b c\n\na b d e f\na b c\n", "utf-8")
    figures = evaluate(f"text={text}", f"sentences={scores}")
    rows = [json.loads(line) for line in scores.read_text().splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3, 4]
    assert [row["tokens"] for row in rows] == [4, 1, 6, 4]
    assert rows[0]["log_prob"] == pytest.approx(rows[3]["log_prob"], rel=1e-6)
    total = -sum(row["log_prob"] for row in rows)
    assert figures["perplexity"] == pytest.approx(math.exp(total / 15), rel=1e-12)


def test_evaluate_needs_nothing_beside_the_checkpoint(
    evaluate: Command, run_dir: Path, tmp_path: Path
) -> None:
    text = tmp_path / "own.txt"
    text.write_text("a b c\n")
    before = evaluate(f"text={text}")
    for path in [*run_dir.glob("*.*"), *tmp_path.glob("t*.txt"), tmp_path / "valid.txt"]:
        if path.name != "best.ckpt":
            path.unlink(missing_ok=True)
    text.write_text("a b c\n")
    assert evaluate(f"text={text}")["perplexity"] == before["perplexity"]


# -- generate ------------------------------------------------------------------------------------------------


@pytest.fixture
def generate(command: Command, run_dir: Path) -> Callable[..., str]:
    def run(*words: str) -> str:
        done = command("generate", f"checkpoint={run_dir / 'best.ckpt'}", *words)
        assert (done.code, done.err) == (0, "")
        return str(done.out)

    return run


def test_generate_repeats_itself_for_a_seed(generate: Command) -> None:
    assert generate("seed=5") == generate("seed=5") != generate("seed=6")
    assert generate("temperature=0", "seed=1") == generate("temperature=0", "seed=2")


def test_generate_writes_as_much_as_asked(generate: Command) -> None:
    for length in (1, 7, 40):
        out = generate(f"length={length}", "prompt=a b")
        assert out.startswith("a b")
        # an <eos> is a line's end, and print ends the last line
        assert len(out.removesuffix("\n").replace("\n", " <eos> ").split()) == length + 2


def test_generate_tells_of_a_prompt_outside_the_vocabulary(command: Command, run_dir: Path) -> None:
    code, out, err = command("generate", f"checkpoint={run_dir / 'best.ckpt'}", "prompt=a zz", "length=3")
    assert code == 0
    assert out.startswith("a zz ")
    assert err == "not in the vocabulary, read as <unk>: zz\n"


def test_unk_is_written_on_demand_only(generate: Command) -> None:
    assert "<unk>" not in generate("length=400", "temperature=5")
    assert "<unk>" in generate("length=400", "temperature=5", "allow_unk=true")


# -- help ----------------------------------------------------------------------------------------------------


def test_help_of_train_shows_groups_choices_and_keys(command: Command) -> None:
    code, out, err = command("train", "--help")
    assert (code, err) == (0, "")
    for line in (
        "trainer: cpu, ddp, debug, gpu",
        "logger: csv, wandb, wandb_offline",
        "data: files, ptb, pydoc, text8",
        "hornn_fofe",
        "hornn_gated",
        "model.order=3",
        "data.root=FOLDER",
        "trainer.max_epochs=20",
        "overwrite=true",
        "HYDRA_FULL_ERROR=1",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("entry", "keys"),
    [
        ("evaluate", ["checkpoint", "split: test", "text", "sentences", "batch_size: 1", "result"]),
        ("generate", ["checkpoint", "prompt", "length: 50", "temperature: 0.8", "seed: 1"]),
    ],
)
def test_help_of_the_others_shows_their_keys(command: Command, entry: str, keys: list[str]) -> None:
    code, out, err = command(entry, "--help")
    assert (code, err) == (0, "")
    assert f"python src/{entry}.py checkpoint=PATH" in out
    for key in keys:
        assert key in out


# -- real corpora --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.corpus
def test_penn_treebank_from_one_command(
    process: Command, corpus_root: Callable[[str], str], tmp_path: Path
) -> None:
    root = corpus_root("ptb/ptb.train.txt")
    run = tmp_path / "run"
    settings = ["data=ptb", f"data.root={root}", "model.hidden_size=16", "trainer.max_steps=20", "logger=csv"]
    code, _, err = process("train", *settings, f"run_dir={run}", f"data.cache_dir={tmp_path / 'cache'}")
    assert (code, err) == (0, "")
    result = result_of(run)
    assert result["corpus"]["tokens"] == {"train": 929_589, "valid": 73_760, "test": 82_430}
    assert result["corpus"]["vocab_size"] == 10_000
    assert result["evaluation"]["test_tokens"] == 82_430
    assert result["num_parameters"] == 2 * 10_000 * 16 + 4 * 16**2
    assert result["metrics"][0]["step"] == 20
    assert result["epochs"] == pytest.approx(20 / math.ceil(math.ceil(929_589 / 20) / 30), abs=1e-4)
    assert 100 < result["test_ppl"] < 10_000


@pytest.mark.slow
@pytest.mark.corpus
def test_the_head_of_text8_is_named_so_everywhere(
    process: Command, corpus_root: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = corpus_root("text8/text8.head")
    monkeypatch.chdir(tmp_path)
    settings = [
        "data=text8",
        "data.variant=head",
        f"data.root={root}",
        "model.hidden_size=8",
        "trainer.max_steps=5",
    ]
    code, out, err = process("train", *settings, "logger=csv", f"data.cache_dir={tmp_path / 'cache'}")
    assert (code, err) == (0, "")
    (path,) = tmp_path.glob("outputs/**/result.json")
    assert path.relative_to(tmp_path).parts[:3] == ("outputs", "hornn_fofe", "text8-head")
    result = result_of(path.parent)
    assert (result["data"], result["corpus"]["name"]) == ("text8-head", "text8-head")
    assert result["corpus"]["valid_is_test"]
    assert sum(result["corpus"]["tokens"].values()) in (1_171_946, 1_171_947)  # the last word may be cut
    assert "on text8-head" in out
    evaluated = process(
        "evaluate", f"checkpoint={path.parent / 'best.ckpt'}", f"data.root={root}", "batch_size=20"
    )
    assert "text8-head test" in evaluated.out


@pytest.mark.slow
def test_a_full_error_on_demand(process: Command, small: list[str], tmp_path: Path) -> None:
    words = [*small, "model.order=0", f"run_dir={tmp_path / 'run'}"]
    code, _, err = process("train", *words)
    assert (code, err) == (2, "error: order must be an integer >= 1, got 0\n")
    code, _, err = process("train", *words, HYDRA_FULL_ERROR="1")
    assert code != 0
    assert "Traceback (most recent call last):" in err
