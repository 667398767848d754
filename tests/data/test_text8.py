import hashlib
import math
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from hornn.data import synthetic, text8
from hornn.data.synthetic import write_text
from hornn.data.text import TextData
from hornn.data.text8 import Release, Text8, build_data
from hornn.data.vocabulary import VocabularyRule

TEXT = b" anarchism " + b"one two three two " * 50 + b"end"
TEST_BYTES = 60


def release(zip_path: Path | None = None) -> Release:
    zip_sum = "sha256:" + hashlib.sha256(zip_path.read_bytes()).hexdigest() if zip_path else "sha256:none"
    return Release(len(TEXT), "md5:" + hashlib.md5(TEXT).hexdigest(), TEST_BYTES, zip_sum)


def corpus(root: Path, published: Release, valid_bytes: int = 0, url: str = "file:///absent") -> Text8:
    return Text8(root, "full", valid_bytes, VocabularyRule(2), url, published)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "text8").mkdir()
    (tmp_path / "text8" / "text8").write_bytes(TEXT)
    return tmp_path


def pack(path: Path, member: str = "text8", content: bytes = TEXT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return path


def words(text: Text8, split: str) -> list[str]:
    return [word for block in text.tokens(split) for word in block]


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 20])
def test_published_border_is_exact(plain: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(text8, "BLOCK", block)
    text = corpus(plain, release())
    text.fetch()
    assert text.splits == ("train", "test")
    assert words(text, "train") == TEXT[:-TEST_BYTES].decode().split()
    assert words(text, "test") == TEXT[-TEST_BYTES:].decode().split()
    assert words(text, "train")[-1] == "t"  # the border cuts a word
    assert words(text, "test")[0] == "wo"


@pytest.mark.parametrize("valid_bytes", [1, 30, 101, 500])
def test_validation_text_comes_from_the_end_of_the_training_text(plain: Path, valid_bytes: int) -> None:
    whole = words(corpus(plain, release()), "train")
    text = corpus(plain, release(), valid_bytes)
    parts = words(text, "train"), words(text, "valid")
    assert parts[0] + parts[1] == whole
    size = len(" ".join(parts[1]))
    assert valid_bytes <= size + 1 <= valid_bytes + len(" anarchism")
    assert words(text, "test") == words(corpus(plain, release()), "test")


def test_validation_is_on_test_unless_cut(plain: Path) -> None:
    for valid_bytes in (0, 200):
        data = TextData(corpus(plain, release(), valid_bytes), 2, 3, 2, plain / "cache")
        data.prepare_data()
        data.setup()
        assert data.has_split("valid") == bool(valid_bytes)
        assert data.describe()["valid_is_test"] == (not valid_bytes)
        assert (data.tokens("valid").tolist() == data.tokens("test").tolist()) == (not valid_bytes)
        assert "<eos>" not in data.vocabulary.decode(data.tokens("train"))
        assert {"<eos>", "<unk>"} < set(data.vocabulary.words)


def test_zip_is_downloaded_and_read_without_unpacking(tmp_path: Path) -> None:
    source = pack(tmp_path / "text8.zip")
    text = corpus(tmp_path / "root", release(source), 100, source.as_uri())
    text.fetch()
    assert [path.name for path in (tmp_path / "root" / "text8").iterdir()] == ["text8.zip"]
    for split in ("train", "valid", "test"):
        assert len(words(text, split)) > 0
    assert words(text, "test") == TEXT[-TEST_BYTES:].decode().split()


@pytest.mark.parametrize(
    ("member", "content"), [("../text8", TEXT), ("text9", TEXT), ("text8", TEXT + b" more")]
)
def test_zip_member_is_checked(tmp_path: Path, member: str, content: bytes) -> None:
    path = pack(tmp_path / "text8" / "text8.zip", member, content)
    text = corpus(tmp_path, release(path))
    text.fetch()
    with pytest.raises(ValueError, match=r"expected one member text8 of 914 bytes"):
        words(text, "train")


def test_wrong_zip(tmp_path: Path) -> None:
    pack(tmp_path / "text8" / "text8.zip")
    with pytest.raises(
        ValueError, match=r"text8\.zip .* has the checksum sha256:.* expected sha256:none: delete it"
    ):
        corpus(tmp_path, release()).fetch()


@pytest.mark.parametrize("content", [b"", TEXT[:-1]])
def test_wrong_text(plain: Path, content: bytes) -> None:
    (plain / "text8" / "text8").write_bytes(content)
    with pytest.raises(ValueError, match=r"has the checksum md5:.* expected md5:"):
        corpus(plain, release()).fetch()


def test_absent_head_says_what_to_do(tmp_path: Path) -> None:
    data = build_data(root=str(tmp_path), cache_dir=str(tmp_path / "cache"), variant="head")
    assert data.name == "text8-head"
    with pytest.raises(
        FileNotFoundError, match=r"text8\.head: it is the first 6,877,825 bytes .* data\.variant=full"
    ):
        data.prepare_data()


def test_synthetic_text_is_drawn_once_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = BytesIO()
    write_text(drawn, 4000, types=300)
    text = drawn.getvalue()
    assert (len(text), text[:4]) == (4000, b" syn")
    assert set(text) <= set(b" abcdefghijklmnopqrstuvwxyz")
    counts = Counter(text.split())
    assert [word for word, _ in counts.most_common(2)] == [b"syna", b"synb"]
    known = Release(4000, "md5:" + hashlib.md5(text).hexdigest(), 400)
    data = TextData(Text8(tmp_path, "synthetic", 300, VocabularyRule(11), "", known), 2, 3, 2, tmp_path)
    monkeypatch.setattr(text8, "write_text", partial(write_text, types=300))
    data.prepare_data()
    data.setup()
    assert data.name == "text8-synthetic"
    assert sum(data.size(split) for split in ("train", "valid", "test")) in (
        len(text.split()),
        len(text.split()) + 1,
    )
    training = Counter(words(data.corpus, "train"))
    assert set(data.vocabulary.words) == {word for word, n in training.items() if n > 10} | {"<eos>", "<unk>"}
    data.corpus.path.write_bytes(text[:-1] + b" ")
    with pytest.raises(
        ValueError, match=r"text8\.synthetic .* has the checksum .*: delete it to draw it again"
    ):
        data.prepare_data()


def test_the_synthetic_text_has_the_frequencies_of_text8() -> None:
    """Expected numbers of the whole text, without drawing it: its word count, types and vocabulary."""
    ranks = np.arange(1, synthetic.TYPES + 1)
    shares = (ranks + synthetic.SHIFT) ** -synthetic.EXPONENT
    shares /= shares.sum()
    length = len(synthetic.PREFIX) + 1 + sum(ranks > 26 * (26**n - 1) // 25 for n in range(4))
    number = 1e8 / (shares @ length)
    assert number == pytest.approx(17_005_207, rel=0.005)
    assert -np.expm1(-number * shares).sum() == pytest.approx(253_854, rel=0.005)  # types: 1 - P(none)
    mean = 0.99 * number * shares
    below = sum(np.exp(k * np.log(mean) - mean) / math.factorial(k) for k in range(11))  # Poisson
    assert (1 - below).sum() == pytest.approx(44_300, rel=0.01)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"variant": "tail"}, "data.variant must be one of full, head, synthetic, got 'tail'"),
        ({"valid_bytes": -1}, "data.valid_bytes must be from 0 to 98,999,999, got -1"),
        ({"valid_bytes": 99_000_000}, "from 0 to 98,999,999"),
    ],
)
def test_bad_keys(keys: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_data(root="", cache_dir="", **keys)


@pytest.mark.corpus
@pytest.mark.parametrize("valid_bytes", [0, 100_000])
def test_head(corpus_root: Callable[[str], str], tmp_path: Path, valid_bytes: int) -> None:
    data = build_data(
        root=corpus_root("text8/text8.head"), cache_dir=str(tmp_path), variant="head", valid_bytes=valid_bytes
    )
    data.prepare_data()
    data.setup()
    about = data.describe()
    assert about["name"] == "text8-head"
    assert sum(about["tokens"].values()) == 1_171_946
    assert about["tokens"]["test"] == 58_772
    assert about["valid_is_test"] == (valid_bytes == 0)
