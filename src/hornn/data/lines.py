"""Reading text files."""

import codecs
import errno
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

STANDARD_INPUT = "-"  # in the place of a path
PIECE = 1 << 20  # bytes of a line that are read at a time
# What the system says of a path that leads nowhere.
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
MARK = "\ufeff"  # the byte order mark, which may begin a text
_BOM = MARK.encode()
# How the files of other programs begin -> what makes a text of them.
OTHERS = {
    codecs.BOM_UTF16_LE: "convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW",
    codecs.BOM_UTF16_BE: "convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW",
    b"\x1f\x8b": "it is compressed: gunzip -c FILE > NEW",
    b"BZh": "it is compressed: bunzip2 -c FILE > NEW",
    b"\xfd7zXZ\0": "it is compressed: xz -dc FILE > NEW",
    b"\x28\xb5\x2f\xfd": "it is compressed: zstd -dc FILE > NEW",
    b"PK\3\4": "it is an archive or a document of an office program: unpack it, or save it as plain text",
}
LATIN1 = "convert it to UTF-8: iconv -f LATIN1 -t UTF-8 FILE > NEW, if it is Latin-1"
UTF16 = "give plain text, or convert it to UTF-8: iconv -f UTF-16LE -t UTF-8 FILE > NEW, if it is UTF-16"


def read_lines(path: Path, size: int = PIECE) -> Iterator[tuple[str, bool]]:
    """The text of a UTF-8 file, a pipe or standard input (`-`) line by line, each with whether the line ends there.

    A byte order mark is skipped. A line of more than `size` bytes comes in several pieces: no line takes more memory
    than one of them.
    FileNotFoundError: no such file. ValueError: a folder, a file without text, bytes that are not UTF-8, or that are 0.
    """
    with open_bytes(path) as file:
        start, number, ends, empty = 0, 1, True, True
        rest = b""  # the beginning of a character that the end of a piece has cut
        while raw := file.readline(size):
            ends = raw.endswith(b"\n")
            text, used = decode(path, start, number, rest + raw, ends)
            text = text if start else text.removeprefix(MARK)
            rest, start, number = (rest + raw)[used:], start + used, number + ends
            if text or ends:
                empty = False
                yield text.removesuffix("\n"), ends
        decode(path, start, number, rest, final=True)
        if empty:
            raise ValueError(f"{shown_name(path)} is empty: give a file that holds text")
        if not ends:
            yield "", True


def arriving_lines(path: Path) -> Iterator[list[str]]:
    """The lines of a file that `read_lines` reads, without their ends. Each list holds the lines that have come by now.

    A byte order mark is skipped. Errors: as in `read_lines`, but a file may be empty. The lines before one that is not
    UTF-8 come before the error.
    """
    with open_bytes(path) as file:
        held: list[bytes] = []  # of a line that is not whole yet
        start, number = 0, 1  # where the next line begins, and which it is
        while data := file.read1(PIECE):
            if b"\n" not in data:
                held.append(data)
                continue
            *whole, rest = b"".join([*held, data]).split(b"\n")
            held, lines = [rest], []
            for line in whole:
                try:
                    lines.append(decode_line(path, start, number, line))
                except ValueError:
                    yield lines
                    raise
                start, number = start + len(line) + 1, number + 1
            yield lines
        last = b"".join(held)
        if last and (start or last != _BOM):
            yield [decode_line(path, start, number, last)]


def open_bytes(path: Path) -> BufferedReader:
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None:
            raise ValueError("standard input is closed: give the path of a file")
        return open(sys.stdin.fileno(), "rb", closefd=False)
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder: give the path of a text file") from None
    except OSError as error:
        if error.errno not in ABSENT:
            raise
        raise FileNotFoundError(f"there is no text file {path}: give the path of an existing one") from None


def shown_name(path: Path) -> str:
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def decode_line(path: Path, start: int, number: int, line: bytes) -> str:
    """A line of a file, which begins at the offset `start`, without byte order mark and carriage return."""
    marked = start == 0 and line.startswith(_BOM)
    text = line[len(_BOM) :] if marked else line
    return decode(path, start + len(line) - len(text), number, text, final=True)[0].removesuffix("\r")


def decode(path: Path, start: int, number: int, data: bytes, final: bool) -> tuple[str, int]:
    """The text of bytes that begin at the offset `start`, and how many of them it is: all where they are `final`.

    number: of the line that they are of. ValueError, with the place of the first one, for bytes that are of no text.
    """
    wrong = data.find(0)  # a character of UTF-8, but of no text: files of other kinds have it
    try:
        if wrong < 0:
            return codecs.utf_8_decode(data, "strict", final)
        data[:wrong].decode()
    except UnicodeDecodeError as error:
        wrong = error.start
    what, remedy = ("not UTF-8", LATIN1) if data[wrong] else ("no text", UTF16)
    known = next((known for begin, known in OTHERS.items() if start == 0 and data.startswith(begin)), None)
    if known is not None:
        remedy = known
    elif data[wrong] and 0 in data:
        what, remedy = "no text", "give a file of text"
    place = f"byte {data[wrong]:#04x} at offset {start + wrong:,}, line {number:,}"
    raise ValueError(f"{shown_name(path)} is {what}: {place}: {remedy}") from None
