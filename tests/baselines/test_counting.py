"""Models of counts and mixtures as runs: what train keeps of them and what it refuses; what they generate."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hydra.utils import get_class

from baselines.counted_folder import KN, QUIET, Folder
from commands.outcomes import refusal
from hornn.baselines.counts import FittedModel
from hornn.recipe import COUNTED
from hornn.use.checkpoints import open_checkpoint
from hornn.use.scorers import CountScorer
from reference.cases import COUNT_NAMES, MODELS


def test_a_run_has_the_files_and_keys_of_a_network_s(folder: Folder) -> None:
    result, network = folder.result("kn"), folder.result("rnn=1")
    assert sorted(network.keys() - result.keys()) == []
    assert sorted(result.keys() - network.keys()) == ["notes", "scoring_tokens_per_second"]
    assert (result["status"], result["choices"]["model"], result["epochs"]) == ("completed", "kn", 1)
    assert result["evaluation"]["batch_size"] == 1
    assert result["evaluation"]["test_tokens"] == result["corpus"]["tokens"]["test"] == 30 * 9
    assert result["config"].keys() == {"model", "data"}
    assert result["baselines"] == network["baselines"]
    files = {path.name for path in (folder.path / "kn").iterdir()} - {".lock", "csv"}
    assert files == {"result.json", "metrics.csv", "best.ckpt", "config.yaml"}
    with (folder.path / "kn" / "metrics.csv").open() as file:
        assert [float(row["valid_ppl"]) for row in csv.DictReader(file)] == [result["valid_ppl"]]
    (logged,) = (folder.path / "kn").glob("csv/*/metrics.csv")
    with logged.open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["test/ppl"]) == pytest.approx(result["test_ppl"])
    assert float(row["valid/ppl"]) == pytest.approx(result["valid_ppl"])
    assert float(row["valid/nll"]) == pytest.approx(math.log(result["valid_ppl"]))


def test_what_a_network_is_trained_with_is_refused(folder: Folder) -> None:
    run = ["train", *folder.data, *QUIET, *KN, f"run_dir={folder.path / 'refused'}", "trainer=gpu", "seed=2"]
    words = ["optimizer.lr=0.5", "network.num_layers=2"]
    said = "has no effect: model=kn counts, and takes keys of model and data alone: leave it out"
    refused = folder.run(*run, "trainer.max_epochs=3", *words)
    assert refusal(refused) == f"error: {' '.join(words)} {said}\n"


def test_columns_that_no_network_could_read_are_refused(folder: Folder) -> None:
    run = ["train", *folder.data, *QUIET, *KN, f"run_dir={folder.path / 'refused'}", "data.batch_size=0"]
    assert refusal(folder.run(*run)) == "error: data.batch_size must be a whole number >= 1, got 0\n"


def test_what_a_table_trains_its_networks_with_makes_no_other_run(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [
        "optimizer=adamw",
        "trainer=gpu",
        "data.batch_size=3",
        "network.num_layers=2",
        "weight_noise=0.1",
    ]
    monkeypatch.setenv("HORNN_SWEEP", "table")
    said = folder.train("same", *KN, *words, "seed=5").out
    assert "counted on one CPU" in said
    ignored = "optimizer=adamw network.num_layers=2 weight_noise=0.1"
    assert f"of networks alone, without effect here: {ignored}" in " ".join(said.split())
    assert "without effect" not in folder.train("plain", *KN, "seed=6").out
    result, first = folder.result("same"), folder.result("kn")
    assert (result["name"], result["test_ppl"]) == (first["name"], first["test_ppl"])
    assert result["seed"] == 5
    monkeypatch.delenv("HORNN_SWEEP")
    said = folder.train("epochs", *KN, "seed=7", "trainer.max_epochs=3").out
    assert "of networks alone, without effect here: trainer.max_epochs=3" in " ".join(said.split())
    folder.train("other", *KN, "model.order=2")
    assert folder.result("other")["name"] != first["name"]


def test_a_finished_run_is_kept_and_replaced_on_demand(folder: Folder) -> None:
    folder.train("again", *KN)
    words = [*folder.data, *QUIET, f"run_dir={folder.path / 'again'}"]
    before = (folder.path / "again" / "result.json").read_bytes()
    assert "overwrite=true replaces it" in refusal(folder.run("train", *words, *KN))
    assert "order must be" in refusal(folder.run("train", *words, *KN, "model.order=0", "overwrite=true"))
    assert (folder.path / "again" / "result.json").read_bytes() == before
    folder.train("again", *KN, "model.order=2", "overwrite=true")
    assert (folder.path / "again" / "result.json").read_bytes() != before


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.order=0", "order must be a whole number >= 1, got 0"),
        ("model.hidden_size=3", "unknown key 'model.hidden_size'"),
        (
            "init_from=some.ckpt",
            "init_from=some.ckpt gives weights to a network; model=kn counts: leave it out",
        ),
        ("seed=-1", "seed must be a whole number from 0 to 4294967295, got -1"),
        ("model=kn_cache model.lengths=[0]", "lengths must be one whole number of tokens, 1 or more"),
    ],
)
def test_train_refuses(folder: Folder, setting: str, message: str) -> None:
    words = [*folder.data, *QUIET, *KN, *setting.split(), f"run_dir={folder.path / 'refused'}"]
    assert message in refusal(folder.run("train", *words))
    assert not (folder.path / "refused").exists()


def test_the_search_has_nothing_to_search_but_their_own_constants(folder: Folder) -> None:
    line = refusal(folder.run("tune", *folder.data, *QUIET, *KN))
    assert "nothing is left to search: optimizer.lr (not in these runs)" in line


def test_counted_models_are_told_apart_by_their_files() -> None:
    """Reports and launchers know them without importing them."""
    for name, model in MODELS.items():
        assert issubclass(get_class(model["_target_"]), FittedModel) is (name in COUNT_NAMES)
        assert bool(model.get(COUNTED)) is (name in COUNT_NAMES)
    assert {"kn", "kn_cache"} <= set(COUNT_NAMES)


def test_generate_follows_the_distribution(folder: Folder) -> None:
    scorer = open_checkpoint(Path(folder.checkpoint("kn_cache")), "cpu")
    assert isinstance(scorer, CountScorer)
    ids = scorer.vocabulary.encode(["a", "b", "<eos>", "c"])
    for size in range(1, len(ids) + 1):
        log_p = scorer.begin(ids[: size - 1]).after(ids[size - 1 : size]).log_probs
        np.testing.assert_allclose(log_p.exp(), scorer.model.distribution(np.array(ids[:size])), rtol=1e-12)


def test_generate_writes(folder: Folder) -> None:
    def text(*words: str) -> str:
        done = folder.run("generate", f"checkpoint={folder.checkpoint('kn')}", *words)
        assert (done.code, done.err) == (0, "")
        return str(done.out)

    assert text("seed=5") == text("seed=5") != text("seed=6")
    out = text("prompt=a b", "length=7", "temperature=0")
    assert out.startswith("a b")
    assert len(out.removesuffix("\n").replace("\n", " <eos> ").split()) == 9


def test_a_text_that_writes_its_ends_of_lines_out_is_scored_as_in_training(
    folder: Folder, tmp_path: Path
) -> None:
    """It is one sentence to them, in the training and in what is loaded."""
    paths = []
    for split in ("train", "valid", "test"):
        text = (folder.path / f"{split}.txt").read_text().replace("\n", " <eos>\n")
        (tmp_path / f"{split}.txt").write_text(text)
        paths.append(f"data.{split}={tmp_path / split}.txt")
    folder.train("endless", *KN, *paths, "data.eos=false")
    found = folder.figures(f"checkpoint={folder.checkpoint('endless')}", "split=test")
    assert found["perplexity"] == pytest.approx(folder.result("endless")["test_ppl"])
