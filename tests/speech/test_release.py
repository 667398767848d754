"""The published archive: unpacked whole or not at all, and checked by its content."""

import io
import tarfile
from pathlib import Path

import pytest

from hornn.data.download import checksum
from hornn.speech.corpus import read_corpus
from hornn.speech.data import SpeechData
from hornn.speech.prepared import content_of
from hornn.speech.release import Release, fetch_release, unpack
from speech.equal import train_equal
from speech.tiny import write_corpus


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """The tiny corpus as an archive, with files in it that have no business there."""
    folder = write_corpus(tmp_path / "source" / "tiny-1")
    with tarfile.open(tmp_path / "tiny.tar.gz", "w:gz") as archive:
        archive.add(folder, arcname="tiny-1")
        for name in (
            "tiny-1/../outside.txt",
            "tiny-1/etc/../../outside.txt",
            "/outside.txt",
            "tiny-1/run.py",
        ):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("tiny-1/etc/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    corpus = read_corpus(folder)
    uri = (tmp_path / "tiny.tar.gz").as_uri()
    return Release(uri, content_of(corpus), checksum(corpus.grammar, "sha256"))


def data_of(folder: Path, release: Release) -> SpeechData:
    return SpeechData(folder, folder.parent / "cache", train_equal, 5, (2, 20, 2), release)


def test_an_absent_corpus_comes_whole(tmp_path: Path, release: Release) -> None:
    folder = tmp_path / "root" / "tiny"
    data_of(folder, release).prepare_data()
    assert sorted(path.name for path in folder.iterdir()) == ["etc", "wav"]
    assert not (folder / "etc" / "link").exists()
    assert not list(tmp_path.rglob("outside.txt"))
    assert sorted(path.name for path in folder.parent.iterdir()) == ["cache", "tiny"]


def test_two_processes_may_download_at_once(
    tmp_path: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "root" / "tiny"

    def unpack_second(archive: tarfile.TarFile, part: Path) -> None:
        unpack(archive, part)
        monkeypatch.undo()
        fetch_release(folder, release)  # what another process does meanwhile

    monkeypatch.setattr("hornn.speech.release.unpack", unpack_second)
    fetch_release(folder, release)
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]
    assert content_of(read_corpus(folder)) == release.content


def test_another_corpus_of_that_name_is_refused(tmp_path: Path, release: Release) -> None:
    folder = write_corpus(tmp_path / "root" / "tiny")
    (folder / "etc" / "tiny.lm").write_text("other")
    with pytest.raises(
        ValueError, match=r"tiny\.lm have the checksum .*, expected .* another name with data\.name"
    ):
        data_of(folder, release).prepare_data()


@pytest.mark.parametrize("damage", ["cut", "absent", "no corpus", "too large"])
def test_what_does_not_come_whole_leaves_nothing(
    tmp_path: Path, release: Release, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, folder = tmp_path / "tiny.tar.gz", tmp_path / "root" / "tiny"
    if damage == "cut":
        archive.write_bytes(archive.read_bytes()[:-5000])
    elif damage == "absent":
        archive.unlink()
    elif damage == "too large":
        monkeypatch.setattr("hornn.speech.release.LARGEST", 10_000)
    else:
        with tarfile.open(archive, "w:gz"):
            pass
    with pytest.raises(
        OSError, match=r"cannot download file:.*: put the folder tiny into .*, or set data\.root"
    ):
        fetch_release(folder, release)
    assert list((tmp_path / "root").iterdir()) == []
