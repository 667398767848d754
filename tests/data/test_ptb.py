import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hornn.data.ptb import PennTreebank, build_data
from hornn.data.text import TextData

TEXTS = {"train": " a b <unk> N \n" * 9, "valid": " a b \n", "test": " b b \n"}


def small(root: Path, unit: str, source: Path) -> TextData:
    sums = {split: "md5:" + hashlib.md5(text.encode()).hexdigest() for split, text in TEXTS.items()}
    corpus = PennTreebank(root, unit, source.as_uri(), sums)
    return TextData(corpus, 2, 3, 1, root / "cache")


@pytest.mark.parametrize(
    ("unit", "words", "valid"),
    [
        ("word", {"a", "b", "<unk>", "N", "<eos>"}, ["a", "b", "<eos>"]),
        ("char", {" ", *"abunkN<>", "<eos>"}, [" ", "a", " ", "b", "<eos>"]),
    ],
)
def test_downloaded_copy(tmp_path: Path, unit: str, words: set[str], valid: list[str]) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for split, text in TEXTS.items():
        (source / f"ptb.{split}.txt").write_text(text)
    data = small(tmp_path / "root", unit, source)
    data.prepare_data()
    data.setup()
    assert set(data.vocabulary.words) == words
    assert data.vocabulary.decode(data.tokens("valid")) == valid
    assert (tmp_path / "root" / "ptb" / "ptb.test.txt").read_text() == TEXTS["test"]


def test_copy_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(
        OSError, match=r"cannot download file:.*ptb\.train\.txt .*put ptb\.train\.txt into .*ptb"
    ):
        small(tmp_path / "root", "word", tmp_path).prepare_data()


def test_unknown_unit() -> None:
    with pytest.raises(ValueError, match=r"data\.unit must be one of word, char, got 'syllable'"):
        build_data(root="", cache_dir="", unit="syllable")


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("unit", "types", "tokens"),
    [
        ("word", 10_000, {"train": 929_589, "valid": 73_760, "test": 82_430}),
        ("char", 50, {"train": 5_059_550, "valid": 396_412, "test": 446_184}),
    ],
)
def test_published_counts(
    corpus_root: Callable[[str], str], tmp_path: Path, unit: str, types: int, tokens: dict[str, int]
) -> None:
    data = build_data(root=corpus_root("ptb/ptb.train.txt"), cache_dir=str(tmp_path), unit=unit)
    data.prepare_data()
    data.setup()
    assert data.describe()["tokens"] == tokens
    assert len(data.vocabulary) == types
    assert sum(data.vocabulary.counts) == tokens["train"]
    assert sum(chunk.count for chunk in data.stream("valid")) == tokens["valid"]
