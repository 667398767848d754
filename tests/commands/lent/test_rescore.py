"""rescore.py: n-best lists under weights that are given or found."""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import hornn
from commands.outcomes import refusal, rewrite
from outcome import Command


@pytest.fixture
def lists(run_dir: Path, tmp_path: Path) -> Path:
    """The lists and references of dev and test: the recogniser prefers wrong hypotheses, the model the right one."""
    draw, model = random.Random(0), hornn.load(run_dir / "best.ckpt")
    for name in ("dev", "test"):
        rows, said = [], []
        for number in range(20):
            texts = [" ".join(draw.choices("abcdefg", k=draw.randint(2, 6))) for _ in range(5)]
            scores = [score.log_prob for score in model.score(texts)]
            said.append(f"{name}-{number} {texts[scores.index(max(scores))]}")
            order = sorted(range(5), key=lambda i: scores[i])  # the right one last
            rows += [
                f"{name}-{number}\t{texts[i]}\t{-0.2 * place:.3f}\t-9\n" for place, i in enumerate(order)
            ]
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
        (tmp_path / f"{name}.txt").write_text("\n".join(said) + "\n")
    return tmp_path


def test_weights_are_found_on_dev(command: Command, run_dir: Path, lists: Path) -> None:
    figures = lists / "figures.json"
    code, out, err = command(
        "rescore",
        f"checkpoint={run_dir / 'best.ckpt'}",
        *(f"nbest={lists / 'test.tsv'}", f"references={lists / 'test.txt'}"),
        *(f"dev={lists / 'dev.tsv'}", f"dev_references={lists / 'dev.txt'}"),
        f"result={figures}",
    )
    assert code == 0, err
    found = json.loads(figures.read_text())
    assert found["dev_wer"] == found["dev_wer_at_least"] == 0
    assert found["wer"] < found["wer_of_first"]
    assert found["wer_at_least"] == 0
    assert found["score_weights"]["lm_weight"] > 0
    assert (found["utterances"], found["hypotheses"]) == (20, 100)
    assert [line.split(" ")[0] for line in out.splitlines()] == [f"test-{number}" for number in range(20)]
    assert f"wer  {found['wer']:.2f}" in err


def test_unknown_words_are_counted(command: Command, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "lists.tsv").write_text("u\ta b\t-1\t-1\nu\ta xylophone\t-1\t-1\n")
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"nbest={tmp_path / 'lists.tsv'}"]
    done = command("rescore", *words, "lm_weight=1")
    assert done.code == 0, done.err
    assert re.search(r"^ +tokens  6\n out of vocabulary  1 \(16\.7 %\)$", done.err, re.MULTILINE)


def test_hypotheses_without_tokens_are_rescored(command: Command, run_dir: Path, tmp_path: Path) -> None:
    """As where a recogniser heard nothing, and the model has no ends of lines."""
    rewrite(run_dir / "best.ckpt", lambda c: c["hornn"]["tokenizer"].update(eos=False))
    (tmp_path / "lists.tsv").write_text("u\t\t-1\t-1\n")
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"nbest={tmp_path / 'lists.tsv'}"]
    done = command("rescore", *words, "lm_weight=1")
    assert (done.code, done.out) == (0, "u \n"), done.err
    assert re.search(r"^ +tokens  0\n out of vocabulary  0$", done.err, re.MULTILINE)


def test_given_weights_choose_the_highest_total(
    command: Command, run_dir: Path, lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without references there are no error rates, and no package for them is needed."""
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"nbest={lists / 'test.tsv'}"]
    done = command("rescore", *words, "lm_weight=0.5", "word_penalty=1.5", "old_weight=2")
    assert done.code == 0, done.err
    assert "wer" not in done.err
    model, totals = hornn.load(run_dir / "best.ckpt"), {}
    for line in (lists / "test.tsv").read_text().splitlines():
        utterance, text, acoustic, old = line.split("\t")
        total = float(acoustic) + 0.5 * model.score([text])[0].log_prob + 2 * float(old)
        totals.setdefault(utterance, []).append((total + 1.5 * len(text.split()), text))
    assert done.out.splitlines() == [f"{utterance} {max(each)[1]}" for utterance, each in totals.items()]
    refused = command("rescore", *words, "lm_weight=1", f"references={lists / 'test.txt'}")
    assert refusal(refused).startswith("error: word error rates need rapidfuzz: pip install")
    assert refused.out == ""


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("given", "message"),
    {
        "batch_size=8": "lm_weight is not given: give it, or dev= and dev_references=",
        "lm_weight=-1": "lm_weight must be >= 0 and finite, got -1",
        "lm_weight=x": "lm_weight must be >= 0 and finite, got 'x'",
        "dev=LISTS/dev.tsv": "dev= and dev_references= belong together",
        "lm_weight=1 nbest=null": "nbest= names no text file: give the path of one",
        "lm_weight=1 references=": "references= names no text file: give the path of one",
        "lm_weight=1 nbest=/none": "there is no text file /none",
        "lm_weight=1 references=LISTS/dev.txt": "the utterance 'dev-0' has no hypotheses",
    }.items(),
)
def test_what_cannot_be_rescored_is_said(
    command: Command, run_dir: Path, lists: Path, given: str, message: str
) -> None:
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"nbest={lists / 'test.tsv'}"]
    more = given.replace("LISTS", str(lists)).split()
    assert message in refusal(command("rescore", *words, *more))


def test_costs_are_better_the_less_they_are(command: Command, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "lists.tsv").write_text("u\ta b\t900\t1\nu\tc d\t100\t1\n")
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"nbest={tmp_path / 'lists.tsv'}", "lm_weight=0"]
    assert command("rescore", *words, "costs=true").out == "u c d\n"
    assert command("rescore", *words).out == "u a b\n"


def test_a_weight_that_is_given_is_kept_on_dev(command: Command, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "lists.tsv").write_text("u\ta b\t-9\t-1\nu\tc d\t-1\t-1\n")
    (tmp_path / "said.txt").write_text("u a b\n")

    def rescore(*words: str) -> dict[str, Any]:
        done = command(
            "rescore",
            f"checkpoint={run_dir / 'best.ckpt'}",
            *(f"nbest={tmp_path / 'lists.tsv'}", f"dev={tmp_path / 'lists.tsv'}"),
            *(f"dev_references={tmp_path / 'said.txt'}", f"result={tmp_path / 'figures.json'}", *words),
        )
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads((tmp_path / "figures.json").read_text())
        return found

    figures = rescore("old_weight=0.75", "lm_weight=3")
    assert (figures["score_weights"]["lm_weight"], figures["score_weights"]["old_weight"]) == (3, 0.75)
    assert figures["weights_found_on"] == str(tmp_path / "lists.tsv")
    figures = rescore("old_weight=0.75", "lm_weight=3", "word_penalty=0")
    assert "weights_found_on" not in figures, "none was"
    assert "dev_wer" in figures


def test_a_hypothesis_that_cannot_be_scored_is_named(command: Command, tmp_path: Path) -> None:
    grams = "-0.30103\t</s>\n-99\t<s>\n-0.30103\ta\n"
    (tmp_path / "a.arpa").write_text(f"\\data\\\nngram 1=3\n\n\\1-grams:\n{grams}\n\\end\\\n")
    (tmp_path / "lists.tsv").write_text("u\ta\t-1\t-1\nv\ta\t-1\t-1\n\nu\ta z\t-1\t-1\n")
    words = [f"checkpoint={tmp_path / 'a.arpa'}", f"nbest={tmp_path / 'lists.tsv'}", "lm_weight=1"]
    assert f"error: {tmp_path / 'lists.tsv'}, line 4: 'z' is none of" in refusal(command("rescore", *words))
