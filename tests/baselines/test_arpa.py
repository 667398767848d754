"""ARPA files: what is written reads the same, numbers worked by hand, and every kind of damage."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from baselines.zipf import zipf
from hornn.baselines.arpa import read_arpa, write_arpa
from hornn.baselines.ngram import KneserNey
from hornn.data.ptb import build_data
from hornn.use.checkpoints import is_arpa

NOTHING = np.zeros(0, dtype=np.int64)
FALLBACK = [0.5, 1.0, 1.5]
WORDS = ["<eos>", "<unk>", "naïve", *(f"w{i}" for i in range(37))]

# Bigrams that back off without interpolation: after `a`, 0.75 for b and 0.25 for the others by gamma = 0.5;
# p(a) = 0.5, p(b) = 0.25 + 0.25 of </s>, p(b | a) = 0.75, so that gamma(a) = 0.25 / (1 - 0.25) = 1 / 3.
BY_HAND = """made by hand

\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-0.30103\ta\t-0.4771213
-99 <s>
-0.60206\tb
-0.60206\t</s>

\\2-grams:
-0.1249387\ta b

\\end\\
"""


def fitted(order: int, eos_id: int | None = 0) -> KneserNey:
    model = KneserNey(len(WORDS), eos_id, order, FALLBACK)
    model.fit(zipf(1, 900, len(WORDS) - 2), NOTHING)
    return model


@pytest.fixture
def by_hand(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "by_hand.arpa"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_file_is_the_model_it_was_written_from(order: int, tmp_path: Path) -> None:
    model, path = fitted(order), tmp_path / "kn.arpa"
    write_arpa(path, model, WORDS)
    words, read = read_arpa(path)
    assert words == WORDS
    assert (read.vocab_size, read.eos_id, read.order) == (len(WORDS), 0, order)
    assert read.num_parameters == model.num_parameters
    text = zipf(2, 400, len(WORDS))
    np.testing.assert_allclose(read.score(text), model.score(text), rtol=1e-8)
    for t in (0, 1, 2, 17, 100):
        np.testing.assert_allclose(read.distribution(text[:t]), model.distribution(text[:t]), rtol=1e-7)
    again = type(read)(read.vocab_size, read.eos_id, read.order)
    again.load_state(read.state())
    np.testing.assert_array_equal(again.score(text), read.score(text))
    write_arpa(tmp_path / "again.arpa", read, words)
    assert (tmp_path / "again.arpa").read_bytes() == path.read_bytes()


def test_what_stands_in_a_file(tmp_path: Path) -> None:
    """The toy corpus that test_ngram works by hand: `a b </s> a c </s>` and a word d."""
    model = KneserNey(5, 4, 2, FALLBACK)
    model.fit(np.array([0, 1, 4, 0, 2, 4]), NOTHING)
    write_arpa(tmp_path / "toy.arpa", model, ["a", "b", "c", "d", "<eos>"])
    lines = (tmp_path / "toy.arpa").read_text().splitlines()
    assert lines[:6] == [
        "\\data\\",
        "ngram 1=6",
        "ngram 2=5",
        "",
        "\\1-grams:",
        "-0.698970004\ta\t-0.301029996",
    ]
    assert lines[9:11] == ["-0.522878745\t</s>\t0", "-99\t<s>\t-0.301029996"]
    assert lines[-3:] == ["-0.22184875\t<s> a", "", "\\end\\"]
    assert [line.split("\t")[1] for line in lines[13:18]] == ["a b", "a c", "b </s>", "c </s>", "<s> a"]


def test_text_without_sentences(tmp_path: Path) -> None:
    model = KneserNey(3, None, 2, FALLBACK)
    model.fit(np.array([0, 1, 0, 2, 0]), NOTHING)
    write_arpa(tmp_path / "kn.arpa", model, ["a", "b", "c"])
    words, read = read_arpa(tmp_path / "kn.arpa")
    assert (words, read.eos_id) == (["a", "b", "c"], None)
    np.testing.assert_allclose(read.score(np.array([2, 2, 1])), model.score(np.array([2, 2, 1])), rtol=1e-8)


def test_numbers_of_a_file_by_hand(by_hand: Callable[[str], Path]) -> None:
    words, model = read_arpa(by_hand(BY_HAND))
    assert words == ["a", "b", "<eos>"]
    a, b, end = range(3)
    scored = np.exp(-model.score(np.array([a, b, a, a, end, b])))
    np.testing.assert_allclose(scored, [1 / 2, 3 / 4, 1 / 2, 1 / 6, 1 / 12, 1 / 4], rtol=1e-6)
    np.testing.assert_allclose(model.distribution(np.array([a])), [1 / 6, 3 / 4, 1 / 12], rtol=1e-6)


def test_a_file_without_begin_mark_and_with_other_line_ends(by_hand: Callable[[str], Path]) -> None:
    text = BY_HAND.replace("ngram 1=4", "ngram 1=3").replace("-99 <s>\n", "").replace("\n", "\r\n")
    words, model = read_arpa(by_hand(text.removesuffix("\r\n")))
    assert words == ["a", "b", "<eos>"]
    assert np.exp(-model.score(np.array([1]))) == pytest.approx(1 / 4, rel=1e-6)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "marked.lm"
    path.write_text(BY_HAND.removeprefix("made by hand\n\n"), encoding="utf-8-sig")
    assert is_arpa(path)
    assert read_arpa(path)[0] == ["a", "b", "<eos>"]


def test_no_part_of_a_file_passes_for_the_file(by_hand: Callable[[str], Path]) -> None:
    whole = len(BY_HAND) - 1  # the last end of line may be missing
    for size in range(whole):
        with pytest.raises(ValueError, match=r"truncated|no ARPA file"):
            read_arpa(by_hand(BY_HAND[:size]))
    assert read_arpa(by_hand(BY_HAND[:whole]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ngram 1=4", "ngram 1=5", r"line 12: the header says ngram 1=5, there are 4"),
        ("ngram 2=1", "ngram 2=0", r"line 15: the header says ngram 2=0, there are 1"),
        ("ngram 2=1", "ngram 3=1", r"line 5: expected 'ngram 2=COUNT', found 'ngram 3=1'"),
        ("ngram 2=1", "bigrams 1", r"line 5: expected 'ngram 2=COUNT', found 'bigrams 1'"),
        ("ngram 1=4\nngram 2=1\n", "", r"line 4: the header promises no words"),
        ("ngram 2=1", f"ngram 2={'9' * 5000}", r"line 5: expected 'ngram 2=COUNT', found 'ngram 2=9+"),
        (
            "ngram 2=1",
            "\n".join(f"ngram {n}=0" for n in range(2, 200)),
            r"line 104: it holds n-grams of more than 100 words, and no more are read",
        ),
        ("\\2-grams:", "\\3-grams:", r"line 13: expected \\2-grams:, found '\\\\3-grams:'"),
        ("\n\\end\\", "\n\\fin\\\n\\end\\", r"line 16: expected \\end\\, found '\\\\fin\\\\'"),
        ("-0.1249387\ta b", "-0.1249387\ta", r"line 14: expected log10 .*, 2 words, found '-0.1249387\\ta'"),
        (
            "-0.1249387\ta b",
            "-0.1249387\ta b\t0",
            r"line 14: expected log10 of a probability .*, 2 words, found",
        ),
        ("-0.30103\ta", "O.30103\ta", r"line 8: expected log10 .*, 1 word and perhaps log10 of a back-off"),
        ("-0.30103\ta", "0.30103\ta", r"line 8: expected log10 of a probability \(0 or less\)"),
        ("-0.30103\ta", "nan\ta", r"line 8: expected log10 of a probability \(0 or less\)"),
        ("-0.4771213", "inf", r"line 8: expected log10 of a probability"),
        ("-0.4771213", "400", r"line 8: expected log10 .* back-off weight \(below 30\), found '-0.30103"),
        ("-0.30103\ta", "-0.301_03\ta", r"line 8: expected log10 of a probability \(0 or less\)"),
        ("-0.60206\tb", "-0.60206\ta", r"line 10: the word 'a' comes twice"),
        ("-0.60206\tb", "-0.60206\t<eos>", r"line 8: the words <eos> and </s> are both there"),
        ("a b", "a zebra", r"line 14: the word 'zebra' is none of the 1-grams"),
        ("a b", "a <s>", r"line 14: <s> can only be the first word"),
        (
            "-0.4771213",
            "-0.3",
            r"the probabilities after 'a' sum to 1\.\d+, not to 1 within 0\.001: the file is dam",
        ),
        ("-0.30103\ta", "-0.4\ta", r"the probabilities of the words sum to 0\.898\d+, not to 1 within"),
        ("ngram 2=1", "ngram 2=2", r"line 15: the header says ngram 2=2"),
        ("\\data\\", "data", r"line 16: the file ends without a line \\data\\: it is no ARPA file"),
    ],
)
def test_damaged_files(by_hand: Callable[[str], Path], old: str, new: str, message: str) -> None:
    assert BY_HAND.count(old) == 1
    path = by_hand(BY_HAND.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        read_arpa(path)
    assert str(caught.value).startswith(str(path))


def test_entries_that_come_twice_or_have_no_beginning(by_hand: Callable[[str], Path]) -> None:
    entry = "-0.1249387\ta b\n"
    twice = BY_HAND.replace("ngram 2=1", "ngram 2=2").replace(entry, entry * 2)
    with pytest.raises(ValueError, match="line 15: this entry comes twice"):
        read_arpa(by_hand(twice))
    third = BY_HAND.replace("ngram 2=1", "ngram 2=1\nngram 3=1")
    third = third.replace(entry, f"{entry}\n\\3-grams:\n-1\tb a a\n")
    with pytest.raises(ValueError, match=r"line 18: the first 2 words are no entry of order 2"):
        read_arpa(by_hand(third))


def test_no_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no ARPA file .*absent\.arpa"):
        read_arpa(tmp_path / "absent.arpa")
    path = tmp_path / "latin.arpa"
    path.write_bytes(BY_HAND.replace("\tb\n", "\té\n").replace("a b", "a é").encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 10: the word b'\\xe9' is not UTF-8"):
        read_arpa(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], "2 words for a model of 3"),
        (["a", "b", "a"], "the word 'a' comes twice"),
        (["<eos>", "</s>", "a"], "the word '</s>' comes twice"),
        (["a", " ", "b"], "cannot hold the word ' '"),
        (["a", "", "b"], "cannot hold the word ''"),
        (["a", "<s>", "b"], "cannot hold the word '<s>'"),
    ],
)
def test_words_that_no_file_can_hold(words: list[str], message: str, tmp_path: Path) -> None:
    model = KneserNey(3, None, 2, FALLBACK)
    model.fit(np.array([0, 1, 0, 2, 0]), NOTHING)
    path = tmp_path / "kn.arpa"
    path.write_text("before")
    with pytest.raises(ValueError, match=message):
        write_arpa(path, model, words)
    with pytest.raises(ValueError, match="no n-grams yet"):
        write_arpa(path, KneserNey(3, None, 2), ["a", "b", "c"])
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_cannot_be_fitted(by_hand: Callable[[str], Path]) -> None:
    _, model = read_arpa(by_hand(BY_HAND))
    with pytest.raises(ValueError, match="estimated already"):
        model.fit(NOTHING, NOTHING)


@pytest.mark.corpus
def test_penn_treebank_through_a_file(corpus_root: Callable[[str], str], tmp_path: Path) -> None:
    data = build_data(root=corpus_root("ptb/ptb.train.txt"), cache_dir=str(tmp_path))
    data.prepare_data()
    data.setup()
    model = KneserNey(len(data.vocabulary), data.vocabulary.eos_id, order=2)
    model.fit(data.tokens("train"), data.tokens("valid"))
    write_arpa(tmp_path / "kn.arpa", model, data.vocabulary.words)
    words, read = read_arpa(tmp_path / "kn.arpa")
    assert words == data.vocabulary.words
    test = np.asarray(data.tokens("test"))
    assert np.exp(read.score(test).mean()) == pytest.approx(np.exp(model.score(test).mean()), abs=1e-5)


def test_the_probabilities_after_longer_contexts_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "kn.arpa"
    write_arpa(path, fitted(3), WORDS)
    text, mark, longest = path.read_text().partition("\\3-grams:\n")
    path.write_text(text + mark + re.sub("^-", "-1", longest, flags=re.MULTILINE))  # 10 % of each at most
    with pytest.raises(ValueError, match=r"the probabilities after '\S+ \S+' sum to 0\.\d+, not to 1"):
        read_arpa(path)
