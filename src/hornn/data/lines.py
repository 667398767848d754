"""Reading text files."""

import codecs
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

STANDARD_INPUT = "-"  # in the place of a path
PIECE = 1 << 20  # bytes of a line that are read at a time
_BOM = b"\xef\xbb\xbf"


def read_lines(path: Path, size: int = PIECE) -> Iterator[tuple[str, bool]]:
    """The text of a UTF-8 file line by line, each with whether the line ends there; a byte order mark is skipped.

    A line of more than `size` bytes comes in several pieces: no line takes more memory than one of them. The path `-`
    is standard input, whose lines come whole.
    FileNotFoundError: no such file. ValueError: an empty file, or bytes that are not UTF-8.
    """
    if str(path) == STANDARD_INPUT:
        yield from ((line, True) for lines in arriving_lines(path) for line in lines)
        return
    with open_bytes(path) as file:
        start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(start)
        ends, empty = True, True
        rest = b""  # the beginning of a character that the end of a piece has cut
        while raw := file.readline(size):
            ends, empty = raw.endswith(b"\n"), False
            text, used = decode(path, start, rest + raw, ends)
            rest, start = (rest + raw)[used:], start + used
            yield text.removesuffix("\n"), ends
        if not ends:
            yield decode(path, start, rest, final=True)[0], True
    if empty:
        raise ValueError(f"{path} is empty: give a file that holds text")


def arriving_lines(path: Path) -> Iterator[list[str]]:
    """The lines of a UTF-8 file, or of standard input (`-`), without their ends: each time those that are there now.

    A byte order mark is skipped. Errors: as in `read_lines`, but a file may be empty.
    """
    with open_bytes(path) as file:
        held: list[bytes] = []  # of a line that is not whole yet
        start = 0  # where the next line begins
        while data := file.read1(PIECE):
            if b"\n" not in data:
                held.append(data)
                continue
            *whole, rest = b"".join([*held, data]).split(b"\n")
            held, lines = [rest], []
            for line in whole:
                lines.append(decode_line(path, start, line))
                start += len(line) + 1
            yield lines
        if last := b"".join(held):
            yield [decode_line(path, start, last)]


def open_bytes(path: Path) -> BufferedReader:
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None:
            raise ValueError("standard input is closed: give the path of a file")
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if not path.is_file():
        raise FileNotFoundError(f"there is no text file {path}: give the path of an existing one")
    return path.open("rb")


def shown_name(path: Path) -> str:
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def decode_line(path: Path, start: int, line: bytes) -> str:
    """One line of a file, which begins at the offset `start`, without byte order mark and carriage return."""
    marked = start == 0 and line.startswith(_BOM)
    text = line[len(_BOM) :] if marked else line
    return decode(path, start + len(line) - len(text), text, final=True)[0].removesuffix("\r")


def decode(path: Path, start: int, data: bytes, final: bool) -> tuple[str, int]:
    """The text of bytes that begin at the offset `start`, and how many of them it is: all where they are `final`."""
    try:
        return codecs.utf_8_decode(data, "strict", final)
    except UnicodeDecodeError as error:
        byte, place = data[error.start], start + error.start
        raise ValueError(
            f"{shown_name(path)} is not UTF-8: byte {byte:#04x} at offset {place:,}: convert it to UTF-8"
        ) from None
