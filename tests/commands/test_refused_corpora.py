"""Texts and published corpora that cannot be read, or are not what they should be."""

import gzip
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.outcomes import contents, refusal
from hornn.data import files
from outcome import Command


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("split", "content", "message"),
    [
        ("train", b"", "is empty: give a file that holds text"),
        ("valid", b"", "is empty: give a file that holds text"),
        ("train", b"a b c\nd \xff e\n", "is not UTF-8: byte 0xff at offset 8, line 2: convert it to UTF-8"),
        (
            "test",
            "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode("latin-1"),
            "is not UTF-8: byte 0xe9 at offset 3, line 1",
        ),
        ("train", "a b".encode("utf-16"), "convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW"),
        ("valid", gzip.compress(b"a b", mtime=0), "is compressed: gunzip -c FILE > NEW"),
        ("train", b"a b c\n", "shorter than one chunk of data.seq_len=5"),
        ("valid", b"a", "tokens cannot fill"),
    ],
)
def test_own_text(train: Command, tmp_path: Path, split: str, content: bytes, message: str) -> None:
    (tmp_path / f"{split}.txt").write_bytes(content)
    words = ["data.eval_batch_size=3"] if message == "tokens cannot fill" else []
    line = refusal(train(*words))
    assert message in line
    assert message[:2] != "is" or f"data.{split}: {tmp_path / split}.txt" in line


@pytest.mark.each(3)
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_own_text_that_is_not_there(train: Command, tmp_path: Path, split: str) -> None:
    (tmp_path / f"{split}.txt").unlink()
    line = refusal(train())
    assert (
        f"there is no text file data.{split}={tmp_path / split}.txt: give the path of an existing one" in line
    )


def test_a_folder_is_no_text(train: Command, tmp_path: Path) -> None:
    (tmp_path / "valid.txt").unlink()
    (tmp_path / "valid.txt").mkdir()
    line = refusal(train())
    assert f"data.valid={tmp_path / 'valid.txt'} is a folder: give the path of a text file" in line


def test_a_pipe_is_no_corpus(train: Command, tmp_path: Path) -> None:
    (tmp_path / "train.txt").unlink()
    os.mkfifo(tmp_path / "train.txt")
    line = refusal(train())
    assert f"data.train={tmp_path / 'train.txt'} is a pipe or a device, and a corpus is read several" in line
    assert line.endswith("times: write its text into a file first\n")


@pytest.mark.each(4)
@pytest.mark.parametrize("model", ["rnn", "kn"])
@pytest.mark.parametrize("when", ["read_lines", "TextFiles.fetch"])
def test_a_text_that_is_being_written(
    command: Command, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, when: str
) -> None:
    """No token of it is kept, and no run begins, whatever moment it grew at."""
    text, cache = tmp_path / "train.txt", tmp_path / "cache"
    place = files if when == "read_lines" else files.TextFiles
    read = getattr(place, when.rpartition(".")[2])

    def grow(*given: Any) -> Any:
        if not any(cache.glob("files-*")):
            text.write_text(f"{text.read_text()}and more\n")
        return read(*given)

    monkeypatch.setattr(f"hornn.data.files.{when}", grow)
    texts = [f"data.{split}={tmp_path / split}.txt" for split in ("train", "valid", "test")]
    words = small if model == "rnn" else ["data=files", *texts]
    line = refusal(
        command("train", *words, f"model={model}", f"data.cache_dir={cache}", f"run_dir={tmp_path / 'r'}")
    )
    assert f"data.train={text}" in line
    assert line.endswith("changed while it was read: give the command again once the file is written\n")
    assert not list(tmp_path.glob("r/*.ckpt"))
    if when == "read_lines":
        assert not list(cache.glob("files-*"))


def test_one_file_to_learn_from_and_to_be_tested_on(train: Command, tmp_path: Path) -> None:
    (tmp_path / "test.txt").unlink()
    (tmp_path / "test.txt").symlink_to(tmp_path / "train.txt")
    line = refusal(train())
    assert f"data.train and data.test are one file, {tmp_path / 'test.txt'}: give text that is new" in line


def test_all_files_of_one_s_own_are_asked_for_at_once(command: Command, tmp_path: Path) -> None:
    line = refusal(command("train", "data=files", f"run_dir={tmp_path / 'run'}"))
    assert (
        line == "error: missing value 'data.train': give data.train=FILE, data.valid=FILE, data.test=FILE\n"
    )


def test_own_text_without_words(train: Command, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("\n \n")
    assert "the test split of files" in refusal(train("data.eos=false"))


def test_a_run_does_not_go_on_over_another_text(train: Command, run_dir: Path, tmp_path: Path) -> None:
    (run_dir / "result.json").unlink()
    before = contents(run_dir)
    text = (tmp_path / "train.txt").read_text().splitlines()
    (tmp_path / "train.txt").write_text("\n".join(reversed(text)) + "\n")  # the vocabulary is the same
    line = refusal(train())
    assert "holds the unfinished run " in line
    assert "give another run_dir, or overwrite=true to replace it" in line
    assert contents(run_dir) == before


@pytest.fixture
def published(command: Command, tmp_path: Path) -> Command:
    """`train.py` on a published corpus under tmp_path/root; what would be downloaded is nowhere."""
    nowhere = (tmp_path / "nowhere").as_uri()
    common = [f"data.root={tmp_path / 'root'}", f"data.cache_dir={tmp_path / 'cache'}", f"data.url={nowhere}"]
    rest = ["logger=csv", f"run_dir={tmp_path / 'run'}"]
    return lambda *words: command("train", *words, *common, *rest)


def test_ptb_that_cannot_be_had(published: Command, tmp_path: Path) -> None:
    line = refusal(published("data=ptb"))
    assert "cannot download file://" in line
    assert f"put ptb.train.txt into {tmp_path / 'root' / 'ptb'}" in line


@pytest.mark.each(3)
@pytest.mark.parametrize("content", [b"", b" aer banknote berlitz \n", b"\xff\xfe"])
def test_ptb_that_is_not_the_published_one(published: Command, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "root" / "ptb" / "ptb.train.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    line = refusal(published("data=ptb"))
    assert f"{file} ({len(content)} bytes) has the checksum md5:" in line
    assert "expected md5:f26c4b92c5fdc7b3f8c7cdcb991d8420: delete it to download it again" in line
    assert file.read_bytes() == content


@pytest.mark.corpus
def test_ptb_cut_short(published: Command, corpus_root: Callable[[str], str], tmp_path: Path) -> None:
    source = Path(corpus_root("ptb/ptb.train.txt"), "ptb", "ptb.train.txt").read_bytes()
    file = tmp_path / "root" / "ptb" / "ptb.train.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(source[:-1])
    assert f"({len(source) - 1:,} bytes) has the checksum" in refusal(published("data=ptb"))


@pytest.mark.thorough
@pytest.mark.slow
def test_text8_that_is_not_the_published_one(published: Command, tmp_path: Path) -> None:
    folder = tmp_path / "root" / "text8"
    folder.mkdir(parents=True)
    assert "cannot download" in refusal(published("data=text8"))
    with zipfile.ZipFile(folder / "text8.zip", "w") as archive:
        archive.writestr("text8", "anarchism originated")
    assert "has the checksum sha256:" in refusal(published("data=text8"))
    (folder / "text8").write_text(" anarchism originated")
    assert "(21 bytes) has the checksum md5:" in refusal(published("data=text8"))
    assert "data.variant=full" in refusal(published("data=text8", "data.variant=head"))
    (folder / "text8.head").write_bytes(b"")
    assert "(0 bytes) has the checksum md5:" in refusal(published("data=text8", "data.variant=head"))
    assert "data.variant must be one of full, head, synthetic, got 'tail'" in refusal(
        published("data=text8", "data.variant=tail")
    )
