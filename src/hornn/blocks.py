"""Generated blocks in pages that people write. No torch here.

A block begins with a line `<!-- NAME -->` or `<!-- NAME: words -->` and ends with the line `<!-- end -->`. What
stands between the two lines is generated; every other byte of the page stays as its author wrote it.

    <!-- overview -->                                      src/report.py --write: the picture of all tables
    <!-- rows: SWEEP ROW ROW ... [metric=KEY] -->          src/report.py --write: some rows of a table; each later
                                                           row has its gain on the first one
    <!-- claims: SWEEP|PREFIX ... [says=TEXT ...] -->      src/report.py --write: the claims of these sweeps, with
                                                           their outcomes; PREFIX stands for all sweeps PREFIX_...;
                                                           with texts, the claims that say one; `_` is a blank
    <!-- costs -->                                         src/report.py --write: what each table takes
    <!-- speed -->, <!-- speed: FILE SECTION ... -->, <!-- ratios -->, <!-- text8 -->, <!-- text8: FILE -->
                                                           src/bench.py --write: its tables; those of FILE.json, all
                                                           or these; three ratios; what the tables on text8 take, by
                                                           its file or by FILE.json
    <!-- parameters -->                                    src/parameters.py --write: the table of weight counts

Fenced code is never read as a block.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hornn.writing import write_atomically

NAMES = ("overview", "rows", "claims", "costs", "speed", "ratios", "text8", "parameters")
BEGIN, END = re.compile(r"<!-- (\w+)(?:: *(.*?))? *-->"), "<!-- end -->"
Writers = Mapping[str, Callable[[list[str]], str]]


class Block(NamedTuple):
    """A block between two lines, counted from 0."""

    name: str
    words: list[str]
    begin: int
    end: int


def pages_with_blocks(folder: Path) -> list[Path]:
    """The pages of a project: the top folder's and all of its docs/."""
    return sorted(folder.glob("*.md")) + sorted((folder / "docs").rglob("*.md"))


def renew_pages(folder: Path, writers_at: Callable[[Path], Writers]) -> list[Path]:
    """Write the blocks of a project's pages anew, of none where one is wrong; return the pages that changed.

    writers_at: what writes the blocks of a page in this folder, by their names; others stay. A writer gets the words
    behind the block's name. ValueError with the page and the line where it raises one, and where a block is not well
    formed.
    """
    changed = {}
    for page in pages_with_blocks(folder):
        with page.open(encoding="utf-8", newline="") as file:
            old = file.read()
        if (new := renewed(page, old, writers_at(page.parent))) != old:
            changed[page] = new
    for page, text in changed.items():
        write_atomically(page, text)
    return list(changed)


def renewed(page: Path, old: str, writers: Writers) -> str:
    """The text of a page with the blocks that `writers` names anew."""
    lines = old.splitlines(keepends=True)
    for block in reversed(find_blocks(lines, page)):
        if block.name in writers:
            try:
                text = writers[block.name](block.words)
            except ValueError as error:
                raise ValueError(f"{page}, line {block.begin + 1}: {error}") from error
            lines[block.begin + 1 : block.end] = [text.strip("\n") + "\n"]
    return "".join(lines)


def find_blocks(lines: Sequence[str], page: Path) -> list[Block]:
    """The blocks of a page. ValueError for one inside of another, one without an end, and an end without a block."""
    found: list[Block] = []
    opened: tuple[str, str, int] | None = None
    fence = ""
    for index, line in enumerate(lines):
        word, where = line.strip(), f"{page}, line {index + 1}"
        if not opened and word.startswith("```"):
            ticks = word[: len(word) - len(word.lstrip("`"))]
            fence = ("" if word == fence else fence) if fence else ticks
        match = None if fence else BEGIN.fullmatch(word)
        if match and word == END:
            if not opened:
                raise ValueError(f"{where}: {END} ends no block: blocks are called {', '.join(NAMES)}")
            found.append(Block(opened[0], opened[1].split(), opened[2], index))
            opened = None
        elif match and match[1] in NAMES:
            if opened:
                raise ValueError(
                    f"{where}: the block {opened[0]} of line {opened[2] + 1} has no end: put {END} there"
                )
            opened = (match[1], match[2] or "", index)
    if opened:
        raise ValueError(
            f"{page}, line {opened[2] + 1}: the block {opened[0]} has no end: put {END} behind it"
        )
    return found
