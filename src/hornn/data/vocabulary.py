"""Words and their ids."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hornn.checks import require_positive

UNK = "<unk>"
EOS = "<eos>"


class Vocabulary:
    """The words of a training text, most frequent first, ties in alphabetical order; the id is the rank.

    `counts[i]` says how often `words[i]` occurs in the training tokens, where every word outside the
    vocabulary counts as `<unk>`; the counts therefore add up to the length of the training text.

    `<eos>` is always among the words: it ends a line and is the input before the first token of a stream. A
    closed vocabulary (characters) may lack `<unk>`: then `unk_id` is None and an unknown token is an error.
    A text's own `<unk>` and `<eos>` are these two words.
    """

    def __init__(self, words: list[str], counts: list[int]) -> None:
        self.words = words
        self.counts = counts
        self.index = {word: i for i, word in enumerate(words)}
        self.eos_id = self.index[EOS]
        self.unk_id = self.index.get(UNK)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dtype(self) -> np.dtype:
        """The smallest type that the token cache uses for these ids."""
        return np.dtype(np.uint16 if len(self) <= 2**16 else np.int32)

    @property
    def unknown_share(self) -> float:
        """Of the training tokens, the share that is `<unk>`."""
        total = sum(self.counts)
        return self.counts[self.unk_id] / total if self.unk_id is not None and total else 0.0

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids of the tokens, `unk_id` for unknown ones. ValueError where there is no `<unk>` for these."""
        if self.unk_id is not None:
            return [self.index.get(token, self.unk_id) for token in tokens]
        try:
            return [self.index[token] for token in tokens]
        except KeyError as error:
            raise ValueError(
                f"{error.args[0]!r} is none of the {len(self)} symbols of the vocabulary; it has no {UNK}: "
                "remove it from the text"
            ) from None

    def are_unknown(self, ids: np.ndarray) -> np.ndarray:
        """Which of the ids (N) are `<unk>`: booleans (N)."""
        return np.zeros(len(ids), dtype=bool) if self.unk_id is None else ids == self.unk_id

    def decode(self, ids: Iterable[int]) -> list[str]:
        return [self.words[i] for i in ids]

    def state(self) -> dict[str, Any]:
        """Plain lists, fit for a checkpoint that is loaded with `weights_only=True`."""
        return {"words": list(self.words), "counts": list(self.counts)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Vocabulary":
        """Raises KeyError or TypeError unless there are different words, and how often each occurs."""
        words, counts = list(state["words"]), list(state["counts"])
        if not (all(type(word) is str for word in words) and len(set(words)) == len(words)):
            raise TypeError("the words of its vocabulary are no different texts")
        if not (all(type(count) is int and count >= 0 for count in counts) and len(counts) == len(words)):
            raise TypeError(f"its vocabulary has no count for each of its {len(words):,} words")
        return cls(words, counts)


@dataclass(frozen=True)
class VocabularyRule:
    """Which training words get an id of their own.

    min_count: the least number of occurrences. max_size: the most entries, with `<eos>` and `<unk>`, or None.
    unk: whether there is an `<unk>` for the others; without it every training word is kept.
    """

    min_count: int = 1
    max_size: int | None = None
    unk: bool = True

    def __post_init__(self) -> None:
        require_positive(**{"data.min_count": self.min_count})
        if self.max_size is not None and (not isinstance(self.max_size, int) or self.max_size < 3):
            raise ValueError(
                f"data.max_size must be null or a whole number >= 3 ({EOS} and {UNK} are counted), "
                f"got {self.max_size!r}"
            )

    def build(self, counts: Counter[str]) -> Vocabulary:
        """The vocabulary of a training text in which each word occurs `counts[word]` times."""
        special = {EOS, UNK} if self.unk else {EOS}
        kept = {word: count for word, count in counts.items() if word not in special}
        if self.unk:
            if not kept:
                raise ValueError("the training text holds no word: give another one")
            ranked = sorted((-count, word) for word, count in kept.items() if count >= self.min_count)
            if self.max_size is not None:
                ranked = ranked[: self.max_size - len(special)]
            kept = {word: -count for count, word in ranked}
            if not kept:
                raise ValueError(
                    f"no word occurs data.min_count={self.min_count} times in the training text: lower it"
                )
        kept[EOS] = counts[EOS]
        if self.unk:
            kept[UNK] = counts.total() - sum(kept.values())
        ranked = sorted((-count, word) for word, count in kept.items())
        return Vocabulary([word for _, word in ranked], [-count for count, _ in ranked])


def count_classes(bounds: Sequence[int]) -> list[str]:
    """The names of classes of words by their counts, the rarest first; a class begins at each bound."""
    inner = [f"{low:,} to {high - 1:,}" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]:,}", *inner, f"{bounds[-1]:,} or more"]
