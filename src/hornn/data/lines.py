"""Reading text files."""

import codecs
from collections.abc import Iterator
from pathlib import Path

PIECE = 1 << 20  # bytes of a line that are read at a time
_BOM = b"\xef\xbb\xbf"


def read_lines(path: Path, size: int = PIECE) -> Iterator[tuple[str, bool]]:
    """The text of a UTF-8 file line by line, each with whether the line ends there; a byte order mark is skipped.

    A line of more than `size` bytes comes in several pieces: no line takes more memory than one of them.
    FileNotFoundError: no such file. ValueError: an empty file, or bytes that are not UTF-8.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no text file {path}: give the path of an existing one")
    with path.open("rb") as file:
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


def decode(path: Path, start: int, data: bytes, final: bool) -> tuple[str, int]:
    """The text of bytes that begin at the offset `start`, and how many of them it is: all where they are `final`."""
    try:
        return codecs.utf_8_decode(data, "strict", final)
    except UnicodeDecodeError as error:
        byte, place = data[error.start], start + error.start
        raise ValueError(
            f"{path} is not UTF-8: byte {byte:#04x} at offset {place:,}: convert it to UTF-8"
        ) from None
