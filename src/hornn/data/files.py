"""The user's own text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornn.checks import in_home, require_choice
from hornn.data.content import file_checksum, require_text_file
from hornn.data.corpus import Corpus
from hornn.data.lines import read_lines
from hornn.data.text import TextData
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule


class TextFiles(Corpus):
    """One UTF-8 file per split. The vocabulary comes from `train` alone; other words are `<unk>`."""

    name = "files"

    published = False

    def __init__(
        self, files: dict[str, Path], tokenizer: Tokenizer, rule: VocabularyRule, cache_dir: Path
    ) -> None:
        self.files = files
        self.cache_dir = cache_dir
        self.tokenizer = tokenizer
        self.rule = rule
        self.known: dict[str, str] = {}  # split -> the checksum that says which text this is

    @property
    def path(self) -> Path:
        return self.path_of("train")

    def path_of(self, split: str) -> Path:
        return self.files[split].absolute()

    def fetch(self) -> None:
        for split, path in self.files.items():
            require_text_file(f"data.{split}", path)
        if self.files["train"].samefile(self.files["test"]):
            raise ValueError(
                f"data.train and data.test are one file, {self.files['test']}: give text that is new as data.test"
            )

    def identity(self) -> dict[str, Any]:
        return {"checksum": " ".join(self._checksum(split) for split in self.splits)}

    def changed_since(self, checksum: str) -> list[str]:
        then = zip(self.splits, checksum.split(), strict=False)  # a checkpoint may hold fewer
        return [
            f"data.{split}={path}"
            for split, old in then
            if file_checksum(path := self.files[split], self.cache_dir) != old
        ]

    def same_texts(self) -> list[tuple[str, ...]]:
        by_content: dict[str, list[str]] = {}
        for split in self.splits:
            by_content.setdefault(self._checksum(split), []).append(split)
        return [tuple(splits) for splits in by_content.values() if len(splits) > 1]

    def _checksum(self, split: str) -> str:
        if split not in self.known:
            self.known[split] = file_checksum(self.files[split], self.cache_dir)
        return self.known[split]

    def tokens(self, split: str) -> Iterator[list[str]]:
        try:
            for tokens, _ in self.tokenizer.blocks(read_lines(self.files[split])):
                yield tokens
        except ValueError as error:
            raise ValueError(f"data.{split}: {error}") from None


def build_data(
    *,
    root: str,
    cache_dir: str,
    train: str,
    valid: str,
    test: str,
    batch_size: int = 20,
    seq_len: int = 30,
    eval_batch_size: int = 20,
    unit: str = "word",
    eos: bool = True,
    lowercase: bool = False,
    min_count: int = 1,
    max_size: int | None = None,
) -> TextData:
    """Own text; the keys are explained in conf/data/files.yaml. `root` is not used: the paths say where the texts
    lie."""
    require_choice("data.unit", unit, ("word", "char"))
    files = {}
    for split, name in {"train": train, "valid": valid, "test": test}.items():
        if not name:
            raise ValueError(f"data.{split} must be the path of a text file, got {name!r}")
        files[split] = in_home(name)
    corpus = TextFiles(
        files,
        Tokenizer(unit, eos, lowercase),
        VocabularyRule(min_count, max_size),
        in_home(cache_dir),
    )
    return TextData(corpus, batch_size, seq_len, eval_batch_size, cache_dir)
