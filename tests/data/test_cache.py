import hashlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hornn.data.cache import TokenCache
from hornn.data.corpus import Corpus
from hornn.data.files import TextFiles
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule


class Fixed(Corpus):
    """A corpus from memory that counts how often it is read."""

    name = "fixed"
    path = Path("memory")

    def __init__(self, rule: VocabularyRule | None = None, checksum: str = "1", test: str = "b d") -> None:
        self.tokenizer = Tokenizer("word", eos=False)
        self.rule = rule or VocabularyRule()
        self.texts = {"train": "a b a c", "valid": "a", "test": test}
        self.checksum = checksum
        self.reads = 0

    def fetch(self) -> None: ...

    def identity(self) -> dict[str, str]:
        return {"checksum": self.checksum}

    def tokens(self, split: str) -> Iterator[list[str]]:
        self.reads += 1
        for line in self.texts[split].splitlines():
            yield self.tokenizer.tokens(line)


def test_ids_are_those_of_the_text(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path, Fixed())
    assert cache.read() is None
    cache.write()
    cached = cache.read()
    assert cached is not None
    decoded = {split: " ".join(cached.vocabulary.decode(ids)) for split, ids in cached.splits.items()}
    assert decoded == {"train": "a b a c", "valid": "a", "test": "b <unk>"}
    assert all(isinstance(ids, np.memmap) and ids.dtype == np.uint16 for ids in cached.splits.values())
    assert sorted(tmp_path.iterdir()) == [cache.ids_path, cache.json_path]


def test_one_cache_per_corpus_rule_and_tokenizer(tmp_path: Path) -> None:
    char = Fixed()
    char.tokenizer = Tokenizer("char", eos=False)
    corpora = [Fixed(), Fixed(VocabularyRule(2)), Fixed(checksum="2"), char]
    assert len({TokenCache(tmp_path, corpus).ids_path for corpus in corpora}) == len(corpora)
    assert TokenCache(tmp_path, Fixed()).ids_path == TokenCache(tmp_path, Fixed()).ids_path


@pytest.mark.parametrize(
    "damage", ["short", "long", "changed", "no ids", "no json", "half a json", "other json"]
)
def test_damage_is_seen(tmp_path: Path, damage: str) -> None:
    cache = TokenCache(tmp_path, Fixed())
    cache.write()
    ids, about = cache.ids_path.read_bytes(), cache.json_path.read_text()
    if damage == "short":
        cache.ids_path.write_bytes(ids[:-2])
    elif damage == "long":
        cache.ids_path.write_bytes(ids + b"\0\0")
    elif damage == "changed":
        cache.ids_path.write_bytes(bytes(len(ids)))
    elif damage == "no ids":
        cache.ids_path.unlink()
    elif damage == "no json":
        cache.json_path.unlink()
    elif damage == "half a json":
        cache.json_path.write_text(about[: len(about) // 2])
    else:
        cache.json_path.write_text(json.dumps(json.loads(about) | {"key": {}}))
    assert cache.read() is None
    cache.write()
    assert cache.read() is not None
    assert cache.ids_path.read_bytes() == ids


def test_a_second_writer_in_the_midst_of_the_first(tmp_path: Path) -> None:
    class Interrupted(Fixed):
        def tokens(self, split: str) -> Iterator[list[str]]:
            yield from super().tokens(split)
            if split == "valid":
                TokenCache(tmp_path, Fixed()).write()

    cache = TokenCache(tmp_path, Interrupted())
    cache.write()
    assert cache.read() is not None
    assert sorted(tmp_path.iterdir()) == [cache.ids_path, cache.json_path]


def test_split_without_tokens(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the test split of fixed .* holds no tokens"):
        TokenCache(tmp_path, Fixed(test="\n \n")).write()
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write the token cache into .*file.*: set data\.cache_dir"):
        TokenCache(tmp_path / "file", Fixed()).write()


def test_the_checksum_of_a_text_is_of_its_tokens_however_they_come(tmp_path: Path) -> None:
    known = "sha256:" + hashlib.sha256(b"a\nb\na\nc\na\nb\nd\n").hexdigest()
    for number, train in enumerate(("a b a c", "a b\na c", "a\nb a c")):
        corpus = Fixed(checksum=str(number))
        corpus.texts["train"] = train
        cache = TokenCache(tmp_path, corpus)
        cache.write()
        cached = cache.read()
        assert cached is not None
        assert cached.text_checksum == known


def test_an_edited_corpus_class_of_ones_own_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may give other tokens of the same text. The program's own classes have a `FORMAT` for that."""
    source = "from data.test_cache import Fixed\n\n\nclass Lines(Fixed):\n    pass\n"
    (tmp_path / "own_lines.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    corpus = importlib.import_module("own_lines").Lines()
    before = TokenCache(tmp_path, corpus)
    assert TokenCache(tmp_path, corpus).ids_path == before.ids_path
    (tmp_path / "own_lines.py").write_text(f"{source}\n    # edited\n")
    assert TokenCache(tmp_path, corpus).ids_path != before.ids_path


def test_the_key_of_a_class_of_ours_holds_no_source(tmp_path: Path) -> None:
    """What was cached stays."""
    files = dict.fromkeys(("train", "valid", "test"), tmp_path / "text")
    (tmp_path / "text").write_text("a b\n")
    corpus = TextFiles(files, Tokenizer("word", eos=True), VocabularyRule(), tmp_path)
    assert "code" not in TokenCache(tmp_path, corpus).key
