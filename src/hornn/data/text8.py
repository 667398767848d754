"""text8: 10^8 bytes of clean text of the English Wikipedia of 3 March 2006 (mattmahoney.net/dc/textdata)."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from hornn.checks import in_home, require_choice
from hornn.data.corpus import Corpus
from hornn.data.download import BLOCK, fetch, verify
from hornn.data.synthetic import write_text
from hornn.data.text import TextData
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule
from hornn.writing import replacing

URL = "http://mattmahoney.net/dc/text8.zip"


class Release(NamedTuple):
    """A text: its size and the size of its test split in bytes, its checksum, and the checksum of its zip, if any."""

    size: int
    checksum: str
    test_bytes: int
    zip_checksum: str | None = None


RELEASES = {
    "full": Release(
        100_000_000,
        "md5:3bea1919949baf155f99411df5fada7e",
        1_000_000,  # Mikolov's "development set", which the papers report as test
        "sha256:a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
    ),
    "head": Release(6_877_825, "md5:972292b97e3bc2e1966b9670918cee40", 343_892),  # 5 %
    "synthetic": Release(100_000_000, "md5:4046b75f663b3f402d25389a9893e321", 1_000_000),
}


class Text8(Corpus):
    """One line of lower-case words and blanks, cut by byte offsets; `<eos>` occurs only as the start symbol.

    variant `full`: `root`/text8/text8, or else text8.zip there, read without unpacking. The last 1,000,000
    bytes are the test split; a word cut at the border leaves a piece on each side, as in the released script
    of Mikolov et al. 2015 (arXiv 1412.7753).
    variant `head`: `root`/text8/text8.head, a prefix of 6,877,825 bytes for development, named `text8-head`
    because its results compare with no published ones; the last 5 % are the test split.
    variant `synthetic`: `root`/text8/text8.synthetic, words drawn at random (`hornn.data.synthetic`), named
    `text8-synthetic`: it shows what the whole of text8 takes, and nothing of language.
    valid_bytes: how much of the end of the training text is the validation split; with 0 there is none, and
    the test split is validated on, as the SCRN paper did. The border before the validation
    split falls on a blank, and in `head` the border before the test split, too.
    release: of the variant, another one in tests.
    """

    def __init__(
        self,
        root: Path,
        variant: str,
        valid_bytes: int,
        rule: VocabularyRule,
        url: str,
        release: Release | None = None,
    ) -> None:
        require_choice("data.variant", variant, RELEASES)
        self.release = release or RELEASES[variant]
        self.train_bytes = self.release.size - self.release.test_bytes
        if not isinstance(valid_bytes, int) or not 0 <= valid_bytes < self.train_bytes:
            raise ValueError(
                f"data.valid_bytes must be from 0 to {self.train_bytes - 1:,}, got {valid_bytes!r}"
            )
        self.name = "text8" if variant == "full" else f"text8-{variant}"
        self.variant = variant
        self.folder = root / "text8"
        self.valid_bytes = valid_bytes
        self.url = url
        self.rule = rule
        self.tokenizer = Tokenizer("word", eos=False)
        self.splits = ("train", "valid", "test") if valid_bytes else ("train", "test")

    @property
    def path(self) -> Path:
        if self.variant != "full":
            return self.folder / f"text8.{self.variant}"
        plain = self.folder / "text8"
        return plain if plain.exists() else self.folder / "text8.zip"

    def fetch(self) -> None:
        if self.path.suffix == ".zip":
            assert self.release.zip_checksum is not None
            fetch(self.path, self.url, self.release.zip_checksum)
            return
        if self.variant == "synthetic" and not self.path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                write_text(file, self.release.size)
        if not self.path.exists():
            raise FileNotFoundError(
                f"there is no {self.path}: it is the first {self.release.size:,} bytes of text8; "
                "put it there, set data.root, or choose data.variant=full"
            )
        remedy = (
            "delete it to draw it again"
            if self.variant == "synthetic"
            else "put the published file in its place"
        )
        verify(self.path, self.release.checksum, remedy)

    def identity(self) -> dict[str, Any]:
        return {"checksum": self.release.checksum, "valid_bytes": self.valid_bytes}

    def tokens(self, split: str) -> Iterator[list[str]]:
        """The words of a split, about 10^5 to a block."""
        with self._open() as file:
            start, stop = self._bounds(file)[split]
            file.seek(start)
            piece = b""  # a word that the end of the block has cut
            while start < stop:
                block = file.read(min(BLOCK, stop - start))
                if not block:
                    raise ValueError(f"{self.path} ends at byte {start:,}, expected {stop:,}: delete it")
                start += len(block)
                block = piece + block
                end = block.rfind(b" ") + 1
                piece = block[end:]
                yield block[:end].decode("ascii").split()
            if piece:
                yield [piece.decode("ascii")]

    def _bounds(self, file: IO[bytes]) -> dict[str, tuple[int, int]]:
        test = _blank_before(file, self.train_bytes) if self.variant == "head" else self.train_bytes
        valid = _blank_before(file, test - self.valid_bytes) if self.valid_bytes else test
        return {"train": (0, valid), "valid": (valid, test), "test": (test, self.release.size)}

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.path.suffix != ".zip":
            with self.path.open("rb") as file:
                yield file
            return
        with zipfile.ZipFile(self.path) as archive:
            members = {member.filename: member.file_size for member in archive.infolist()}
            if members != {"text8": self.release.size}:
                raise ValueError(
                    f"{self.path} holds {members}, expected one member text8 of {self.release.size:,} bytes: "
                    "delete it to download it again"
                )
            with archive.open("text8") as member:
                yield member


def _blank_before(file: IO[bytes], position: int, window: int = 1 << 16) -> int:
    """The offset of the last blank before `position`."""
    start = max(0, position - window)
    file.seek(start)
    return start + max(0, file.read(position - start).rfind(b" "))


def build_data(
    *,
    root: str,
    cache_dir: str,
    batch_size: int = 20,
    seq_len: int = 30,
    eval_batch_size: int = 20,
    variant: str = "full",
    valid_bytes: int = 0,
    min_count: int = 11,
    max_size: int | None = None,
    url: str = URL,
) -> TextData:
    """text8; the keys are explained in conf/data/text8.yaml."""
    corpus = Text8(in_home(root), variant, valid_bytes, VocabularyRule(min_count, max_size), url)
    return TextData(corpus, batch_size, seq_len, eval_batch_size, cache_dir)
