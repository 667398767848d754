"""What a run keeps of its epochs: their seconds, the norms of their gradients, and averaged weights."""

import csv
import json
from pathlib import Path

import pytest
import torch

import hornn
from hornn.run.identity import BEST, LAST
from hornn.run.keeper import PAYLOAD
from run.one_rank import run
from run.test_resume import COMMON, run_until_written


def test_the_seconds_of_an_epoch_are_those_of_all_its_starts(
    text: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*text, *COMMON, "trainer.max_epochs=2", "checkpoint_every=4", f"run_dir={tmp_path}/run"]
    run_until_written(LAST, 4, words, monkeypatch)
    last = tmp_path / "run" / LAST
    kept = torch.load(last, weights_only=True)
    assert kept[PAYLOAD]["seconds"] > 0
    kept[PAYLOAD]["seconds"] = 1000.0
    torch.save(kept, last)
    run(words)
    first, second = json.loads((tmp_path / "run" / "result.json").read_text())["metrics"]
    assert first["seconds"] > 1000 > second["seconds"]
    assert first["tokens_per_second"] < second["tokens_per_second"]


def test_averages_are_what_is_validated_and_kept(text: list[str], tmp_path: Path) -> None:
    words = [*text, *COMMON, "optimizer=asgd", "optimizer.lr=1", "optimizer.start=3", "trainer.max_epochs=2"]
    words += ["schedule.threshold=0", "schedule.restore_best=false", "data.eval_batch_size=1"]
    run([*words, f"run_dir={tmp_path / 'run'}"])
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    averages = hornn.load(tmp_path / "run" / BEST)
    (valid,) = (word.removeprefix("data.valid=") for word in text if word.startswith("data.valid="))
    assert result["valid_ppl"] == pytest.approx(averages.perplexity(Path(valid)), rel=1e-5)
    assert result["best_epoch"] == 2
    best, last = (
        torch.load(tmp_path / "run" / name, weights_only=True)["state_dict"] for name in (BEST, LAST)
    )
    assert not any(torch.equal(best[key], last[key]) for key in best)


def test_the_norm_of_an_epoch_is_the_mean_of_its_updates(text: list[str], tmp_path: Path) -> None:
    words = [*text, *COMMON, "trainer.max_epochs=1", "trainer.log_every_n_steps=1"]
    run([*words, f"run_dir={tmp_path / 'run'}"])
    (epoch,) = json.loads((tmp_path / "run" / "result.json").read_text())["metrics"]
    with next((tmp_path / "run").glob("csv/*/metrics.csv")).open() as file:
        norms = [float(row["train/grad_norm"]) for row in csv.DictReader(file) if row["train/grad_norm"]]
    assert len(norms) == 14
    assert epoch["grad_norm"] == pytest.approx(sum(norms) / 14)
    assert epoch["max_grad_norm"] == pytest.approx(max(norms))
