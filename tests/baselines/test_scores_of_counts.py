"""The scores of models of counts, of mixtures and of ARPA files, and what evaluate refuses."""

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from baselines.counted_folder import KN, QUIET, Folder
from commands.outcomes import refusal
from hornn.baselines.mixture import GAIN
from hornn.checkpoint import FORMAT
from hornn.data.base import SPLITS
from hornn.use.checkpoints import open_checkpoint
from hornn.use.evaluate import evaluate

ROOT = Path(__file__).parents[2]


def respell(path: str) -> str:
    """The same file by other words."""
    folder, name = path.rsplit("/", 1)
    return f"{folder}/../{folder.rsplit('/', 1)[1]}/./{name}"


@pytest.mark.parametrize("name", ["kn", "kn_cache"])
def test_evaluate_gives_the_results_of_the_run(folder: Folder, name: str) -> None:
    for split in ("valid", "test"):
        figures = folder.figures(f"checkpoint={folder.checkpoint(name)}", f"split={split}")
        assert figures["perplexity"] == folder.result(name)[f"{split}_ppl"]
        assert (figures["tokens"], figures["read_as"]) == (30 * 9, "left to right")


def test_kn_with_a_cache_is_kn_cache(folder: Folder) -> None:
    """Each takes the better of two lengths by validation, one in training, the other by hand."""
    both = [folder.figures(f"checkpoint={folder.checkpoint('kn')}", f"cache={length}") for length in (5, 20)]
    again = [
        folder.figures(f"checkpoint={folder.checkpoint('kn')}", f"cache={n}", "split=valid") for n in (5, 20)
    ]
    best = int(np.argmin([figures["perplexity"] for figures in again]))
    assert both[best]["perplexity"] == pytest.approx(folder.result("kn_cache")["test_ppl"], rel=1e-12)
    assert set(both[0]["weights"]) == {folder.checkpoint("kn"), "cache of 5"}
    assert sum(both[0]["weights"].values()) == pytest.approx(1)
    assert both[0]["weights_chosen_on"] == "files valid"


def test_a_mixture_is_at_least_as_good_on_validation_as_each_of_its_models(folder: Folder) -> None:
    """Also under a path with an equals sign, as the folders of runs have."""
    names = [folder.checkpoint(name) for name in ("kn", "rnn=1")]
    mixed = folder.figures(f"mix=[{','.join(names)}]", "split=valid")
    alone = [folder.figures(f"checkpoint={name}", "split=valid")["perplexity"] for name in names]
    at_most = math.exp(2 * GAIN)  # where EM ends
    assert mixed["perplexity"] <= min(alone) * at_most
    assert mixed["mix"] == names
    cached = folder.figures(f"checkpoint={names[0]}", f"mix=[{names[1]}]", "cache=[5,20]", "split=valid")
    assert cached["perplexity"] <= mixed["perplexity"] * at_most
    assert list(cached["weights"]) == [*names, "cache of 5", "cache of 20"]


def test_a_mixture_as_a_run_is_the_mixture_that_evaluate_makes(folder: Folder) -> None:
    names = [folder.checkpoint(name) for name in ("kn", "rnn=1")]
    quoted = ",".join(f"'{name}'" for name in names)
    said = folder.train("mixture", "model=mixture", "model.lengths=[5]", f"init_from=[{quoted}]").out
    expected = folder.figures(f"mix=[{','.join(names)}]", "cache=[5]")
    result = folder.result("mixture")
    assert result["test_ppl"] == pytest.approx(expected["perplexity"], rel=1e-9)
    assert result["notes"] == [f"weight {weight:.3f}: {part}" for part, weight in expected["weights"].items()]
    assert all(note in " ".join(said.split()) for note in result["notes"])
    assert "without effect" not in said
    assert result["num_parameters"] == sum(folder.result(name)["num_parameters"] for name in ("kn", "rnn=1"))
    assert result["dtype"] == {"weights": "fp32"}
    assert not (folder.path / "mixture" / "best.ckpt").exists()
    folder.train("alone", "model=mixture", "model.lengths=[5]", f"init_from=['{names[0]}']")
    assert folder.result("alone")["name"] != result["name"]


@pytest.mark.thorough
def test_what_cannot_be_mixed_as_a_run(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("a b c d\n" * 20)
    kn = folder.checkpoint("kn")
    for words, message in (
        ((), "model=mixture mixes two models or more, or one and a cache, got []: give init_from=["),
        ((f"init_from=['{kn}','{kn}']", "model.lengths=[5]"), "mixes two models or more"),
        ((f"init_from=['{kn}','{respell(kn)}']",), "each once"),
        ((f"init_from=['{kn}']",), "mixes two models or more"),
        (("model.lengths=[5,20]",), "mixes two models or more"),
        (("init_from=[]", "model.lengths=[5]"), "init_from must be a list of checkpoints or null, got []"),
        (
            ("init_from=['']", "model.lengths=[5]"),
            "init_from must be a list of checkpoints or null, got ['']",
        ),
        (("init_from=[1,2]",), "init_from must be a list of checkpoints or null, got [1, 2]"),
        ((f"init_from=['{kn}','/none/best.ckpt']",), "there is no checkpoint /none/best.ckpt"),
        ((f"init_from=['{kn}']", "model.lengths=[0]"), "lengths must be one whole number of tokens"),
        (
            (f"init_from=['{kn}']", "model.lengths=[5]", f"data.test={tmp_path / 'test.txt'}"),
            f"{kn} was trained on another text, or with another vocabulary, than the corpus files here: ",
        ),
        (
            (f"init_from=['{kn}']", "model.lengths=[5]", "data.max_size=4"),
            "or with another vocabulary, than the corpus files here: mix models of one text",
        ),
    ):
        given = [*folder.data, *QUIET, "model=mixture", *words, f"run_dir={folder.path / 'refused'}"]
        assert message in refusal(folder.run("train", *given))
        assert not (folder.path / "refused").exists()


def test_lines_of_a_mixture_add_up(folder: Folder, tmp_path: Path) -> None:
    text, result = tmp_path / "nbest.txt", tmp_path / "figures.json"
    text.write_text("a b c\n\na b d e f\na b c\n")
    names = [folder.checkpoint(name) for name in ("kn", "rnn=1")]
    for model in (f"checkpoint={names[0]}", f"mix=[{','.join(names)}]"):
        words = [f"text={text}", f"result={result}", f"data.cache_dir={folder.path / 'cache'}"]
        done = folder.run("score", model, *words)
        assert done.code == 0, done.err
        rows = [json.loads(line) for line in done.out.splitlines()]
        assert [row["tokens"] for row in rows] == [4, 1, 6, 4]
        assert rows[0]["log_prob"] == pytest.approx(rows[3]["log_prob"], rel=1e-6)
        total = -sum(row["log_prob"] for row in rows)
        figures = json.loads(result.read_text())
        assert figures["perplexity"] == pytest.approx(math.exp(total / 15), rel=1e-12)
    assert list(figures["weights"]) == names
    assert figures["weights_chosen_on"] == "files valid"


def test_an_arpa_file_scores_as_the_model_that_wrote_it(folder: Folder, tmp_path: Path) -> None:
    arpa = tmp_path / "kn.arpa"
    folder.evaluate(f"checkpoint={folder.checkpoint('kn')}", f"arpa={arpa}")
    before = folder.figures(f"checkpoint={folder.checkpoint('kn')}")
    after = folder.figures(f"checkpoint={arpa}", f"text={folder.path / 'test.txt'}")
    assert after["perplexity"] == pytest.approx(before["perplexity"], rel=1e-7)
    # The words of an ARPA file may have another order: their ids are translated, and the checkpoint names the corpus.
    lines = arpa.read_text().split("\n")
    first, last = lines.index("\\1-grams:") + 1, lines.index("\\2-grams:") - 1
    lines[first:last] = lines[first:last][::-1]
    (tmp_path / "reversed.arpa").write_text("\n".join(lines))
    names = [str(tmp_path / "reversed.arpa"), folder.checkpoint("kn")]
    mixed = folder.figures(f"mix=[{','.join(names)}]")
    assert mixed["perplexity"] == pytest.approx(before["perplexity"], rel=1e-7)


def test_blanks_among_letters_take_the_remedy_of_the_error(folder: Folder, tmp_path: Path) -> None:
    folder.train("letters", *KN, "data.unit=char")
    line = refusal(
        folder.evaluate(f"checkpoint={folder.checkpoint('letters')}", f"arpa={tmp_path / 'kn.arpa'}")
    )
    assert "cannot hold the word ' '" in line
    remedy = line.rpartition(" by ")[2]
    texts = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for split, path in texts.items():
        words = remedy.replace("FILE", str(folder.path / f"{split}.txt")).replace("NEW", str(path))
        subprocess.run(words, shell=True, check=True)
    folder.train("marked", *KN, "data.unit=char", *(f"data.{split}={path}" for split, path in texts.items()))
    before = folder.figures(f"checkpoint={folder.checkpoint('marked')}")
    folder.evaluate(f"checkpoint={folder.checkpoint('marked')}", f"arpa={tmp_path / 'kn.arpa'}")
    letters = [" ".join(line) for line in texts["test"].read_text().splitlines()]
    texts["test"].write_text("\n".join(letters) + "\n")
    after = folder.figures(f"checkpoint={tmp_path / 'kn.arpa'}", f"text={texts['test']}")
    assert after["perplexity"] == pytest.approx(before["perplexity"], rel=1e-7)


def settings(**given: Any) -> Any:
    """The config of evaluate.py without its command line."""
    return OmegaConf.merge(OmegaConf.load(ROOT / "conf" / "evaluate.yaml"), given)


def test_evaluate_refuses(folder: Folder, tmp_path: Path) -> None:
    kn, cached, rnn = (folder.checkpoint(name) for name in ("kn", "kn_cache", "rnn=1"))
    text, arpa, data = str(folder.path / "test.txt"), str(tmp_path / "kn.arpa"), {"cache_dir": str(tmp_path)}
    evaluate(settings(checkpoint=kn, arpa=arpa, data=data))
    lengths = "cache must be one whole number of tokens, 1 or more, or a list of such"
    given: list[tuple[dict[str, Any], str]] = [
        ({"checkpoint": kn, "cache": 0}, f"{lengths}, got 0"),
        ({"checkpoint": kn, "cache": [5, "x"]}, f"{lengths}, got [5, 'x']"),
        (
            {"checkpoint": kn, "dynamic_lr": 0.1},
            f"dynamic_lr= updates the weights of a network, and {kn} counts",
        ),
        (
            {"checkpoint": kn, "precision": "banana"},
            f"precision=banana is for a network, and {kn} counts: leave it out",
        ),
        ({"checkpoint": rnn, "cache": 5, "dynamic_lr": 0.1}, "dynamic_lr= changes the weights as it scores"),
        (
            {"checkpoint": rnn, "dynamic_lr": [0.1, 0]},
            "dynamic_lr must be > 0 and finite, or a list of such",
        ),
        (
            {"checkpoint": rnn, "dynamic_lr": []},
            "dynamic_lr must be > 0 and finite, or a list of such",
        ),
        ({"checkpoint": rnn, "record": True}, "record=true adds the score of the test split with dynamic"),
        ({"mix": [kn]}, f"mix= interpolates several models, got {kn} alone"),
        ({"checkpoint": kn, "mix": [kn]}, "names a model twice"),
        ({"mix": [kn, respell(kn)]}, "names a model twice"),
        ({"mix": [kn, rnn], "arpa": arpa}, "arpa= writes the n-grams of one model"),
        (
            {"checkpoint": rnn, "arpa": arpa},
            f"arpa= writes the n-grams of a model such as model=kn; {rnn} is of",
        ),
        ({"checkpoint": cached, "arpa": arpa}, "arpa= writes the n-grams of a model such as model=kn"),
        ({"checkpoint": arpa}, f"{arpa} is an ARPA file, which says nothing of its corpus: give text=FILE"),
        (
            {"checkpoint": arpa, "text": text, "cache": 5},
            f"{arpa} is an ARPA file, which says nothing of its",
        ),
    ]
    before = Path(arpa).read_bytes()
    for words, message in given:
        with pytest.raises(ValueError, match=re.escape(message)):
            evaluate(settings(**words, data=data))
    for words, message in (
        ({"checkpoint": kn, "arpa": "/none/kn.arpa"}, "the folder of /none/kn.arpa does not exist"),
        ({"checkpoint": "/none/kn.arpa", "text": text}, "there is no ARPA file /none/kn.arpa"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            evaluate(settings(**words))
    assert Path(arpa).read_bytes() == before


def test_vocabularies_that_differ(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c d h\n" * 20)
    words = [*folder.data, f"data.train={tmp_path / 'train.txt'}", *KN, *QUIET, f"run_dir={tmp_path / 'run'}"]
    assert folder.run("train", *words).code == 0
    line = refusal(folder.evaluate(f"mix=[{folder.checkpoint('kn')},{tmp_path / 'run' / 'best.ckpt'}]"))
    assert "have different vocabularies of 9 and 7 words" in line
    assert f"3 of {folder.checkpoint('kn')} alone, such as 'e'" in line
    assert f"1 of {tmp_path / 'run' / 'best.ckpt'} alone, such as 'h'" in line


def test_a_checkpoint_of_counts_that_is_damaged(folder: Folder, tmp_path: Path) -> None:
    checkpoint = torch.load(folder.checkpoint("kn"), weights_only=True)
    damaged = tmp_path / "damaged.ckpt"
    for change, message in (
        ({"state_dict": {}}, "holds the counts of another model"),
        (
            {"hornn": {**checkpoint["hornn"], "vocabulary": {"words": ["<eos>"], "counts": [1]}}},
            "another model",
        ),
        ({"hornn": {"format": FORMAT}}, "lacks a part of a model"),
    ):
        torch.save({**checkpoint, **change}, damaged)
        with pytest.raises(ValueError, match=message):
            open_checkpoint(damaged, "cpu")
