"""Text files, and what else a path can name."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornn.data.lines import arriving_lines, read_lines

MARK = b"\xef\xbb\xbf"
Read = Callable[[Path], Any]


def whole(path: Path) -> list[str]:
    return [line for lines in arriving_lines(path) for line in lines]


def in_pieces(path: Path, size: int = 3) -> list[str]:
    return "".join(text + "|" * ends for text, ends in read_lines(path, size)).split("|")[:-1]


@pytest.mark.parametrize("read", [whole, in_pieces])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (MARK + b"a\xc3\xa4 b\n\nc", ["a\xe4 b", "", "c"]),
        (MARK + b"\n", [""]),
        (b"a\n" + MARK + b"b\n", ["a", "\ufeffb"]),
        (b"a" * 10_000, ["a" * 10_000]),
    ],
)
def test_a_pipe_is_read_as_a_file_is(tmp_path: Path, read: Read, content: bytes, lines: list[str]) -> None:
    (tmp_path / "file").write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert read(tmp_path / "file") == read(tmp_path / "pipe") == lines
    writer.join()


@pytest.mark.parametrize("read", [whole, in_pieces])
def test_a_path_that_leads_to_no_text_is_refused(tmp_path: Path, read: Read) -> None:
    with pytest.raises(ValueError, match=f"{tmp_path} is a folder: give the path of a text file"):
        read(tmp_path)
    (tmp_path / "file").touch()
    for name in ("absent", "file/absent", "a" * 256):
        with pytest.raises(FileNotFoundError, match=f"no text file {tmp_path / name}: give the path of an"):
            read(tmp_path / name)


@pytest.mark.parametrize("content", [b"", MARK])
def test_a_byte_order_mark_is_no_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert whole(tmp_path / "file") == []
    with pytest.raises(ValueError, match="file is empty: give a file that holds text"):
        in_pieces(tmp_path / "file")


@pytest.mark.parametrize("read", [whole, in_pieces])
@pytest.mark.parametrize(
    ("content", "place", "remedy"),
    [
        (
            "a b\nc\n".encode("utf-16-le"),
            "byte 0x00 at offset 1, line 1",
            "give plain text, or convert it to UTF-8",
        ),
        (b"a b\nc \0\xff\n", "byte 0x00 at offset 6, line 2", "give plain text"),
        (b"a\xff\n", "byte 0xff at offset 1, line 1", "convert it to UTF-8: iconv -f LATIN1"),
        (b"a\xff\0\n", "byte 0xff at offset 1, line 1", "give a file of text"),
    ],
)
def test_bytes_that_are_of_no_text_are_refused(
    tmp_path: Path, read: Read, content: bytes, place: str, remedy: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=f"is no.*: {place}: {remedy}"):
        read(tmp_path / "file")


def test_a_last_line_without_an_end_has_its_number(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a b\nc \xff")
    for read in (arriving_lines, read_lines):
        with pytest.raises(ValueError, match="byte 0xff at offset 6, line 2: convert it"):
            list(read(tmp_path / "file"))


def test_a_character_cut_by_a_piece_moves_no_offset(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes("aa\xe4b".encode() + b"\xff")
    with pytest.raises(ValueError, match="byte 0xff at offset 5, line 1: convert it"):
        list(read_lines(tmp_path / "file", 3))
