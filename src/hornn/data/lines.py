"""Reading text files."""

from collections.abc import Iterator
from pathlib import Path

_BOM = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file without their ends; a byte order mark is skipped.

    FileNotFoundError: no such file. ValueError: an empty file, or bytes that are not UTF-8.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no text file {path}: give the path of an existing one")
    offset = 0
    with path.open("rb") as file:
        for raw in file:
            text = raw.removeprefix(_BOM) if offset == 0 else raw
            skipped = len(raw) - len(text)
            try:
                yield text.decode("utf-8").removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                place = offset + skipped + error.start
                raise ValueError(
                    f"{path} is not UTF-8: byte {raw[skipped + error.start]:#04x} at offset {place:,}: "
                    "convert it to UTF-8"
                ) from None
            offset += len(raw)
    if offset == 0:
        raise ValueError(f"{path} is empty: give a file that holds text")
