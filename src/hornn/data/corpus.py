"""What every corpus has to say about itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule


class Corpus(ABC):
    """A text with a training part and one or two others.

    name: as results show it. splits: which of train, valid and test are texts of their own; a corpus
    without `valid` is validated on its `test`. path: where the text lies. published: whether others know this text.
    """

    name: str
    tokenizer: Tokenizer
    rule: VocabularyRule
    splits: tuple[str, ...] = ("train", "valid", "test")
    published = True

    @property
    @abstractmethod
    def path(self) -> Path: ...

    @abstractmethod
    def fetch(self) -> None:
        """Download what is absent and check what is there."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What decides the text, in plain values: `checksum` of the source and whatever else has a say."""

    def path_of(self, split: str) -> Path:
        """Where a split lies."""
        return self.path

    def same_texts(self) -> list[tuple[str, ...]]:
        """Splits that hold one and the same text, for each such text; published corpora have none."""
        return []

    def changed_since(self, checksum: str) -> list[str]:
        """The files that changed since `identity` had this checksum, as `key=path`, where each has one of its own."""
        return []

    @abstractmethod
    def tokens(self, split: str) -> Iterator[list[str]]:
        """The tokens of a split in order, in blocks of any length."""
