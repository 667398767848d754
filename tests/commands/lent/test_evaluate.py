"""evaluate.py on a finished run: its figures, and what it adds to the result."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from commands.outcomes import refusal, result_of
from hornn.kernels import library
from hornn.use.figures import report
from hornn.use.scorers import NetworkScorer
from outcome import Command


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
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(figures.read_text())
        share = found["out_of_vocabulary"] / found["tokens"]
        known = "; perplexity known is of all others" if "perplexity_known" in found else ""
        said = f"{100 * share:.1f} % of the tokens are unknown, and read as one word: perplexity says little"
        assert done.err == (f"warning: {said}{known}\n" if share > 0.05 else "")
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


def test_without_native_kernels_it_says_so(
    command: Command, run_dir: Path, text: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        library, "_outcome", library.NativeError("the native kernels cannot be built (no disk)")
    )
    done = command("score", f"checkpoint={run_dir / 'best.ckpt'}", f"text={text[1].partition('=')[2]}")
    assert done.code == 0
    said = "the native kernels cannot be built (no disk); scores are the same to rounding, but take longer\n"
    assert done.err.startswith(said)


def test_a_text_from_standard_input_is_called_so(
    evaluate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b c\n")
    found = evaluate(f"text={path}")
    monkeypatch.setattr("sys.stdin", path.open())
    piped = evaluate("text=-")
    assert (found["scored"], piped["scored"]) == (str(path), "standard input")
    assert piped["perplexity"] == found["perplexity"]


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


def test_the_rate_that_ended_in_no_score_is_named(
    command: Command, run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rate is the better one on validation; on the test text it is too large."""
    nats = iter([6.0, 5.0, 800.0])
    monkeypatch.setattr(NetworkScorer, "score", lambda scorer, ids: np.full(len(ids), next(nats)))
    words = ["dynamic_lr=[0.01,0.1]", f"data.cache_dir={tmp_path / 'cache'}"]
    done = command("evaluate", f"checkpoint={run_dir / 'best.ckpt'}", *words)
    assert "gives no finite perplexity (800 nats per token): dynamic_lr=0.1 is too large" in refusal(done)


def test_known_tokens_have_the_perplexity_of_their_own_scores(
    evaluate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(scorer: NetworkScorer, ids: np.ndarray) -> np.ndarray:
        return np.where(scorer.vocabulary.are_unknown(ids), 7.0, 2.0)

    monkeypatch.setattr(NetworkScorer, "score", score)
    (tmp_path / "own.txt").write_text("a zz b\n")
    assert evaluate(f"text={tmp_path / 'own.txt'}")["perplexity_known"] == pytest.approx(np.exp(2))


def test_evaluate_counts_what_the_vocabulary_lacks(evaluate: Command, tmp_path: Path) -> None:
    text = tmp_path / "own.txt"
    text.write_text("a b zz\n\nc \N{SNOWMAN} zz\n", "utf-8")
    figures = evaluate(f"text={text}")
    assert (figures["tokens"], figures["out_of_vocabulary"]) == (4 + 1 + 4, 3)
    assert figures["perplexity"] == pytest.approx(2 ** figures["bits_per_token"], rel=1e-12)
    assert 1 < figures["perplexity_known"] != figures["perplexity"]
    scored = evaluate("split=test")
    assert ("perplexity_known" in scored) == (scored["out_of_vocabulary"] > 0)
    text.write_text("a b\n")
    assert "perplexity_known" not in evaluate(f"text={text}")


def test_figures_are_shown_as_exactly_as_they_are_meant(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {
        "perplexity": 1234.567,
        "bits_per_character": 1.43811,
        "tokens": 1228,
        "out_of_vocabulary": 430,
        "tokens_per_second": 333226.74,
    }
    report(figures, Console(highlight=False, width=80))
    assert capsys.readouterr().out.split("\n")[:5] == [
        "        perplexity  1,234.57",
        "bits per character  1.438",
        "            tokens  1,228",
        " out of vocabulary  430 (35.0 %)",
        " tokens per second  333,227",
    ]


def test_a_text_takes_the_place_of_a_split(command: Command, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("a b\n")
    line = refusal(
        command(
            "evaluate", f"checkpoint={run_dir / 'best.ckpt'}", f"text={tmp_path / 'own.txt'}", "split=valid"
        )
    )
    assert "text= is scored in place of a split, got split=valid, too: leave out one of the two" in line


@pytest.mark.each(3)
@pytest.mark.parametrize(
    "name",
    ["my text (1).txt", "a,b.txt", "what's new.txt", "[x].txt", "back\\slash.txt", "${oc.env:x}.txt"],
)
def test_a_text_may_have_any_name(evaluate: Command, tmp_path: Path, name: str) -> None:
    text = tmp_path / name
    text.write_text("a b\n")
    assert evaluate(f"text={text}")["tokens"] == 3
