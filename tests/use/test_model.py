"""A trained model in Python: what it says is what the commands say."""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hornn
from hornn.baselines.ngram import KneserNey
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule
from hornn.use.evaluate import export
from hornn.use.model import Model
from hornn.use.scorers import CountScorer

NAMES = ["network/best.ckpt", "counts/best.ckpt", "kn.arpa"]
ROOT = Path(__file__).parents[2]
TEXT = "a b c\nd e\n"


@pytest.mark.each(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_perplexity_is_that_of_the_command(command: Any, folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    figures = tmp_path / "figures.json"
    done = command(
        "evaluate", f"checkpoint={folder / name}", f"text={tmp_path / 'text.txt'}", f"result={figures}"
    )
    assert done.code == 0, done.err
    expected = pytest.approx(json.loads(figures.read_text())["perplexity"], rel=1e-6)
    model = hornn.load(str(folder / name))
    assert model.perplexity(TEXT) == expected
    assert model.perplexity(tmp_path / "text.txt") == expected
    assert model.perplexity(str(tmp_path / "text.txt")) == expected


def test_a_model_may_be_loaded_where_gradients_are_off(folder: Path) -> None:
    """As by a service that loads its model with the first question."""
    expected = hornn.load(folder / "network/best.ckpt").score([TEXT])
    with torch.inference_mode():
        assert hornn.load(folder / "network/best.ckpt").score([TEXT]) == expected


def test_a_model_is_not_loaded_in_another_type_than_it_computes_in(folder: Path) -> None:
    torch.set_default_dtype(torch.bfloat16)
    try:
        with pytest.raises(ValueError, match=r"default type is torch\.bfloat16, .*set_default_dtype"):
            hornn.load(folder / "network/best.ckpt")
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_text_without_ends_of_lines_is_continued_without(tmp_path: Path) -> None:
    tokenizer = Tokenizer("word", eos=False)
    vocabulary = VocabularyRule().build(Counter("ab"))
    counts = KneserNey(len(vocabulary), None, order=1)
    counts.fit(np.array(vocabulary.encode("ab")), np.zeros(0, dtype=int))
    model = Model(CountScorer("words", counts, vocabulary, tokenizer, None))
    assert dict(model.next_words())["<eos>"] > 0.05
    assert set(model.generate(length=200, temperature=1)[0]) == set("ab ")


def test_an_arpa_file_of_letters_says_what_a_text_needs(tmp_path: Path) -> None:
    """It reads words between blanks, of which a no-break space is none, and would read nearly all else as unknown."""
    tokenizer, text = Tokenizer("char", eos=True, lowercase=True), "Abc\u00a0ab\nabA\n"
    tokens = [token for line in text.splitlines() for token in tokenizer.tokens(line)]
    vocabulary = VocabularyRule().build(Counter(tokens))
    counts = KneserNey(len(vocabulary), vocabulary.eos_id, order=2)
    counts.fit(np.array(vocabulary.encode(tokens)), np.zeros(0, dtype=int))
    letters = CountScorer("letters", counts, vocabulary, tokenizer, None)
    said = export(letters, tmp_path / "letters.arpa")
    assert said["texts_need"] == "lower case, a blank after each character"
    prepared = "".join(" ".join(line.lower()) + "\n" for line in text.splitlines())
    expected = pytest.approx(Model(letters).perplexity(text), rel=1e-6)
    assert hornn.load(tmp_path / "letters.arpa").perplexity(prepared) == expected
    words = CountScorer("words", counts, vocabulary, Tokenizer("word", eos=True), None)
    assert "texts_need" not in export(words, tmp_path / "words.arpa")


def test_an_arpa_file_without_ends_of_lines_says_that_a_text_needs_to_be_one_line(tmp_path: Path) -> None:
    """Each further line would begin anew, after an end that the counts never saw."""
    tokenizer, lines = Tokenizer("word", eos=False), ["a b", "b a b", "a b b"]
    tokens = [token for line in lines for token in tokenizer.tokens(line)]
    vocabulary = VocabularyRule().build(Counter(tokens))
    counts = KneserNey(len(vocabulary), None, order=2)
    counts.fit(np.array(vocabulary.encode(tokens)), np.zeros(0, dtype=int))
    endless = CountScorer("endless", counts, vocabulary, tokenizer, None)
    said = export(endless, tmp_path / "endless.arpa")
    assert said["texts_need"] == "all its words in one line"
    expected = Model(endless).score(["\n".join(lines)], per_token=True)[0].token_log_probs
    read = hornn.load(tmp_path / "endless.arpa").score([" ".join(lines)], per_token=True)[0]
    assert read.token_texts == (*tokens, "<eos>")
    assert read.token_log_probs is not None
    assert read.token_log_probs[:-1] == pytest.approx(expected, rel=1e-6)


def test_an_arpa_file_may_have_any_name(folder: Path, tmp_path: Path) -> None:
    arpa = (folder / "kn.arpa").read_bytes()
    (tmp_path / "kn.lm").write_bytes(b"\n" + arpa)
    assert hornn.load(tmp_path / "kn.lm").words == hornn.load(folder / "kn.arpa").words
    (tmp_path / "kn.arpa.gz").write_bytes(gzip.compress(arpa))
    with pytest.raises(ValueError, match=r"kn.arpa.gz is compressed: gunzip -c FILE > NEW"):
        hornn.load(tmp_path / "kn.arpa.gz")


def test_a_network_that_trains_scores_without_dropout(folder: Path) -> None:
    model = hornn.load(folder / "network/best.ckpt")
    model.network.dropout = model.network.input_dropout = 0.5
    ways: list[Callable[[], Any]] = [
        lambda: model.perplexity(TEXT),
        lambda: model.score([TEXT]),
        lambda: model.next_words(TEXT),
        lambda: model.generate(TEXT),
    ]
    expected = [way() for way in ways]
    model.network.train()
    model.network.head.eval()
    assert [way() for way in ways] == expected
    assert (model.network.training, model.network.head.training) == (True, False)


@pytest.mark.parametrize("backend", ["eager", "auto"])
def test_a_callers_autocast_changes_no_number(folder: Path, backend: str) -> None:
    model = hornn.load(folder / "network/best.ckpt")
    model.network.backend = backend
    model.network.prepare(torch.device("cpu"))
    ways: list[Callable[[], Any]] = [lambda: model.score([TEXT]), lambda: model.next_words(TEXT)]
    expected = [way() for way in ways]
    with torch.autocast("cpu", torch.bfloat16):
        assert [way() for way in ways] == expected


def test_loading_draws_no_random_numbers(folder: Path) -> None:
    torch.manual_seed(0)
    expected = torch.rand(2).tolist()
    torch.manual_seed(0)
    hornn.load(folder / "network/best.ckpt")
    assert torch.rand(2).tolist() == expected


def test_numbers_may_be_numpys(folder: Path) -> None:
    model = hornn.load(folder / "network/best.ckpt")
    assert model.generate(length=np.int64(5), temperature=np.float64(0.8)) == model.generate(length=5)
    assert model.score([TEXT], batch_size=np.int64(1)) == model.score([TEXT], batch_size=1)
    assert model.next_words(k=np.int64(2)) == model.next_words(k=2)


@pytest.mark.parametrize("name", NAMES)
def test_a_score_is_of_one_text_alone(folder: Path, name: str) -> None:
    model = hornn.load(folder / name)
    one, two, three = model.score(["a b c", "d e", "a b c"], per_token=True)
    assert one.log_prob == pytest.approx(three.log_prob, rel=1e-6)
    assert (one.tokens, two.tokens) == (4, 3)  # with <eos>
    assert one.token_log_probs is not None
    assert sum(one.token_log_probs) == pytest.approx(one.log_prob)
    assert one.perplexity == pytest.approx(model.perplexity("a b c"), rel=1e-5)
    alone = model.score(["d e"])[0]
    assert (alone.log_prob, alone.tokens, alone.token_log_probs) == (pytest.approx(two.log_prob), 3, None)
    assert model.score([]) == []


@pytest.mark.parametrize("text", ["a b " * 64, "a b " * 1024, "\u5b57" * 86, "a" * 300, "a/b/" * 1100])
def test_a_text_may_be_longer_than_the_name_of_a_file(folder: Path, text: str) -> None:
    model = hornn.load(folder / NAMES[0])
    assert model.perplexity(text) == pytest.approx(model.score([text])[0].perplexity, rel=1e-5)
    hornn.load([folder / name for name in NAMES[:2]], fit_on=text)


def test_the_end_of_a_line_makes_a_text_of_a_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what strangers write opens no file, as docs/python.md promises."""
    model = hornn.load(folder / NAMES[0])
    monkeypatch.chdir(tmp_path)
    alone = model.perplexity("a")
    (tmp_path / "a").write_text("c d e\n")
    assert model.perplexity("a") != alone
    assert model.perplexity("a\n") == alone


def test_what_is_no_text_is_refused(folder: Path) -> None:
    model: Any = hornn.load(folder / NAMES[0])
    for call, said in (
        (lambda: model.perplexity(["a", "b"]), r"text must be a string or a Path, got \['a', 'b'\]"),
        (lambda: model.perplexity(5), "text must be a string or a Path, got 5"),
        (lambda: model.perplexity(""), "the text is empty: give one that has words"),
        (
            lambda: hornn.load([folder / name for name in NAMES[:2]], fit_on=""),
            "the text is empty: give one that has words",
        ),
        (lambda: model.score(["a"], per_token="no"), "per_token must be true or false, got 'no'"),
        (lambda: model.generate(allow_unk="no"), "allow_unk must be true or false, got 'no'"),
        (lambda: model.score(["a", 1]), "text 2 must be a string, got 1"),
        (lambda: model.generate(3), "prompt must be a string, got 3"),
        (
            lambda: hornn.make_network("lstm", vocab_size="a"),
            "vocab_size must be a whole number >= 1, got 'a'",
        ),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_a_choice_of_ones_own_is_found_in_its_folder(folder: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(folder / NAMES[0], weights_only=True)
    checkpoint["hornn"]["choices"]["model"] = "mine"
    torch.save(checkpoint, tmp_path / "mine.ckpt")
    (tmp_path / "own" / "model").mkdir(parents=True)
    known = (ROOT / "conf" / "model" / "gru.yaml").read_text()
    (tmp_path / "own" / "model" / "mine.yaml").write_text(known)
    with pytest.raises(ValueError, match=r"unknown model 'mine'.* in Python config_dir"):
        hornn.load(tmp_path / "mine.ckpt")
    found = hornn.load(tmp_path / "mine.ckpt", config_dir=tmp_path / "own")
    assert found.perplexity(TEXT) == hornn.load(folder / NAMES[0]).perplexity(TEXT)
    network = hornn.make_network("mine", vocab_size=11, hidden_size=5, config_dir=tmp_path / "own")
    assert type(network.cells[0]).__name__ == "Gru"
    for nowhere in ("nowhere", 3):
        with pytest.raises(FileNotFoundError, match=f"no folder {nowhere}: config_dir takes one like conf"):
            hornn.load(folder / NAMES[0], config_dir=nowhere)  # type: ignore[arg-type]


def test_a_mixture_is_the_mean_of_its_models(folder: Path) -> None:
    one, other = (hornn.load(folder / name) for name in NAMES[:2])
    mixture = hornn.load([folder / name for name in NAMES[:2]])
    log_p = np.array([model.score(["a b c"], per_token=True)[0].token_log_probs for model in (one, other)])
    expected = np.log(np.exp(log_p).mean(axis=0))
    found = mixture.score(["a b c"], per_token=True)[0].token_log_probs
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    words = dict(mixture.next_words("a b", k=100))
    assert sum(words.values()) == pytest.approx(1)
    assert words["c"] == pytest.approx(math.exp(expected[2]), rel=1e-5)
    fitted = hornn.load([folder / name for name in NAMES[:2]], fit_on=folder / "valid.txt")
    valid = folder / "valid.txt"
    assert fitted.perplexity(valid) <= min(model.perplexity(valid) for model in (one, other, mixture))


@pytest.mark.parametrize("name", [*NAMES, None])
def test_next_words_and_samples(folder: Path, name: str | None) -> None:
    model = hornn.load(folder / name if name else [folder / each for each in NAMES[:2]])
    best = model.next_words("a b", k=3)
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)
    written = model.generate("a b", length=5, num_samples=3, seed=1)
    assert len(written) == 3
    assert written == model.generate("a b", length=5, num_samples=3, seed=np.int64(1))
    assert all(text.startswith("a b") for text in written)
    likeliest = model.generate("a b", length=4, temperature=0)
    assert model.generate("a b", length=4, top_k=1) == likeliest
    assert model.generate("a b", length=4, top_p=1e-9) == likeliest


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", ["word", "char"])
def test_a_prompt_is_read_as_a_text_is_scored(folder: Path, name: str, unit: str) -> None:
    """Its lines end, and of the last one nothing is lost."""
    model = hornn.load(folder / name)
    model.scorer.tokenizer = Tokenizer(unit, eos=True)
    text, others = {
        "word": ("a b\n\nc <eos> d", ["a b c d", "a b\n\nc d"]),
        "char": ("ab \r\nc ", ["ab\nc", "ab"]),
    }[unit]
    scored = model.score([text + " e"[unit == "char" :]], per_token=True)[0]
    assert scored.token_log_probs is not None
    assert math.log(dict(model.next_words(text, k=100))["e"]) == pytest.approx(scored.token_log_probs[-2])
    assert all(model.prompt_tokens(other) != model.prompt_tokens(text) for other in others)
    assert model.generate(text, length=1)[0].startswith(text.replace(" <eos> ", "\n").replace(" \r", ""))
    assert model.prompt_tokens("a\n") == ["a", "<eos>"]
    assert model.prompt_tokens("") == []


def test_what_cannot_be_is_said(folder: Path) -> None:
    model = hornn.load(folder / NAMES[0])
    refused = {
        "score takes a list": lambda: model.score("a b"),
        r"there is no text file none/x.txt: .*; a text of one word ends in \\n": lambda: model.perplexity(
            "none/x.txt"
        ),
        "k must be a whole number >= 1": lambda: model.next_words("a", k=0),
        "top_p must be in": lambda: model.generate(top_p=0),
        "num_samples must be a whole number >= 1": lambda: model.generate(num_samples=0),
        "there is no checkpoint none.ckpt": lambda: hornn.load("none.ckpt"),
        "leave it out": lambda: hornn.load(folder / NAMES[0], fit_on="a b"),
        "kn.arpa is no network": lambda: hornn.load(folder / "kn.arpa").network,
        "a mixture of 2 models is no network: load one of them alone": lambda: (
            hornn.load([folder / name for name in NAMES[:2]]).network
        ),
    }
    for message, attempt in refused.items():
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            attempt()
    assert model.score([""])[0].tokens == 1  # <eos>


def test_generate_takes_the_same_options(command: Any, folder: Path) -> None:
    done = command(
        "generate",
        f"checkpoint={folder / NAMES[0]}",
        "prompt=a b",
        *("length=5", "top_k=3", "top_p=0.9", "num_samples=2", "seed=4"),
    )
    assert done.code == 0, done.err
    expected = hornn.load(folder / NAMES[0]).generate("a b", 5, top_k=3, top_p=0.9, num_samples=2, seed=4)
    assert done.out == "\n\n".join(expected) + "\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"length": "a"}, "length must be a whole number >= 1, got 'a'"),
        ({"length": 1.5}, "length must be a whole number >= 1, got 1.5"),
        ({"temperature": 10**400}, "temperature must be >= 0 and finite, got 1000"),
        ({"temperature": "x"}, "temperature must be >= 0 and finite, got 'x'"),
        ({"top_p": "x"}, r"top_p must be in \(0, 1\] or null, got 'x'"),
        ({"seed": None}, "seed must be a whole number from 0 to 4294967295, got None"),
        ({"seed": 1.5}, "seed must be a whole number from 0 to 4294967295, got 1.5"),
        ({"seed": True}, "seed must be a whole number from 0 to 4294967295, got True"),
        ({"seed": np.int64(-1)}, f"from 0 to 4294967295, got {re.escape(repr(np.int64(-1)))}"),
    ],
)
def test_an_argument_of_another_kind_is_refused(folder: Path, arguments: dict[str, Any], said: str) -> None:
    model = hornn.load(folder / "network/best.ckpt")
    with pytest.raises(ValueError, match=said):
        model.generate(**arguments)


@pytest.mark.parametrize("value", [None, 5, [5]])
def test_what_is_no_path_and_no_text_is_refused(folder: Path, value: Any) -> None:
    with pytest.raises(ValueError, match="load takes a path, or several, got"):
        hornn.load(value)
    if value != [5]:
        with pytest.raises(ValueError, match=f"score takes a list of texts, got {value}"):
            hornn.load(folder / "network/best.ckpt").score(value)


def test_each_way_to_draw_is_that_of_the_command(command: Any, folder: Path) -> None:
    path = folder / NAMES[0]
    model = hornn.load(path, device=torch.device("cpu"))
    plain = model.generate("a b", length=20, seed=4)[0]
    ways: list[dict[str, Any]] = [{"top_k": 1}, {"top_p": 0.3}]
    for way in ways:
        words = [f"{key}={value}" for key, value in {"length": 20, "seed": 4, **way}.items()]
        done = command("generate", f"checkpoint={path}", "prompt=a b", *words)
        assert done.out.removesuffix("\n") == model.generate("a b", length=20, seed=4, **way)[0] != plain
