"""When a text that was read before is read again."""

import os
import shutil
from pathlib import Path

import pytest

from hornn.data import content
from hornn.data.content import checksum_of_all, file_checksum, folder_checksum


@pytest.mark.parametrize("name", ["file", "folder"])
def test_a_copy_of_equal_size_and_time_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As `cp -p` and `rsync -t` leave it."""
    monkeypatch.setattr(content, "MANY", 1)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    text, other = corpus / "text", tmp_path / "other"
    text.write_text("A b")
    other.write_text("a b")
    os.utime(other, ns=(text.stat().st_atime_ns, text.stat().st_mtime_ns))
    read = file_checksum if name == "file" else folder_checksum
    place = text if name == "file" else corpus
    before = read(place, tmp_path / "cache")
    assert read(place, tmp_path / "cache") == before
    shutil.copy2(other, text)
    assert text.stat().st_mtime_ns == other.stat().st_mtime_ns
    assert read(place, tmp_path / "cache") != before


def test_a_file_that_moves_to_another_split_is_another_checksum(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    for name in ("test/b", "train/a"):
        (corpus / name).parent.mkdir(parents=True)
        (corpus / name).write_text(name)
    before = folder_checksum(corpus, tmp_path / "cache")
    (corpus / "test" / "b").rename(corpus / "train" / "0")
    assert folder_checksum(corpus, tmp_path / "cache") != before


def test_another_version_is_another_checksum(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    files = [("a", tmp_path / "a")]
    first, other = (
        checksum_of_all(tmp_path, files, tmp_path / "cache", version) for version in ("3.12", "3.13")
    )
    assert first != other
