"""Runs on the published corpora."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.outcomes import result_of
from outcome import Command


@pytest.mark.slow
@pytest.mark.corpus
def test_penn_treebank_from_one_command(
    command: Command, corpus_root: Callable[[str], str], tmp_path: Path
) -> None:
    root = corpus_root("ptb/ptb.train.txt")
    run = tmp_path / "run"
    settings = ["data=ptb", f"data.root={root}", "model.hidden_size=16", "trainer.max_steps=20", "logger=csv"]
    code, _, err = command("train", *settings, f"run_dir={run}", f"data.cache_dir={tmp_path / 'cache'}")
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
    command: Command, corpus_root: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    code, out, err = command("train", *settings, "logger=csv", f"data.cache_dir={tmp_path / 'cache'}")
    assert (code, err) == (0, "")
    (path,) = tmp_path.glob("outputs/**/result.json")
    assert path.relative_to(tmp_path).parts[:3] == ("outputs", "hornn_fofe", "text8-head")
    result = result_of(path.parent)
    assert (result["choices"]["data"], result["corpus"]["name"]) == ("text8", "text8-head")
    assert result["corpus"]["valid_is_test"]
    assert sum(result["corpus"]["tokens"].values()) in (1_171_946, 1_171_947)  # the last word may be cut
    assert "on text8-head" in out
    evaluated = command(
        "evaluate", f"checkpoint={path.parent / 'best.ckpt'}", f"data.root={root}", "batch_size=20"
    )
    assert "text8-head test" in evaluated.out
