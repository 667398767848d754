"""The streams over a text corpus, and text that comes from outside of one."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hornn.checks import in_home, require_choice
from hornn.data.base import SPLITS, Data
from hornn.data.cache import CachedTokens, TokenCache
from hornn.data.corpus import Corpus
from hornn.data.lines import read_lines, shown_name
from hornn.data.streams import ChunkStream
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import Vocabulary
from hornn.metrics import CHARACTERS, WORDS

MANY_UNKNOWN = 0.05  # of a text: from here on a perplexity says little
SOME_UNKNOWN = 0.01  # from here on they cost much where training shows none


class TextData(Data):
    """Streams over the splits of a corpus: each predicts the next token from the ids of those before.

    corpus: where the tokens come from. batch_size: columns of the training stream, over all processes.
    seq_len: tokens per chunk. eval_batch_size: columns for validation and test. cache_dir: where the ids are
    kept.

    `prepare_data` downloads, checks and tokenises; `setup` maps the ids. Both may be called again.
    ValueError: a size below 1, a training split shorter than one chunk, or fewer tokens
    than columns.
    """

    def __init__(
        self, corpus: Corpus, batch_size: int, seq_len: int, eval_batch_size: int, cache_dir: str | Path
    ) -> None:
        super().__init__(batch_size, seq_len, eval_batch_size)
        self.corpus = corpus
        self.name = corpus.name
        self.tokenizer = corpus.tokenizer
        self.units = CHARACTERS if self.tokenizer.unit == "char" else WORDS
        self.cache_dir = in_home(cache_dir)
        self._cached: CachedTokens | None = None

    def prepare_data(self) -> None:
        self.corpus.fetch()
        cache = TokenCache(self.cache_dir, self.corpus)
        if cache.read() is None:
            cache.write()

    def setup(self) -> None:
        if self._cached is None:
            self._cached = TokenCache(self.cache_dir, self.corpus).read()
        rows = -(-len(self.tokens("train")) // self.batch_size)
        if rows < self.seq_len:
            raise ValueError(
                f"the train split of {self.name} gives columns of {rows:,} tokens, shorter than one chunk of "
                f"data.seq_len={self.seq_len}: lower data.batch_size={self.batch_size} or data.seq_len"
            )
        for split in SPLITS:
            self.stream(split)

    def _tokens(self) -> CachedTokens:
        if self._cached is None:
            raise RuntimeError("the tokens are not there yet: call prepare_data() and then setup()")
        return self._cached

    @property
    def vocabulary(self) -> Vocabulary:
        return self._tokens().vocabulary

    @property
    def counts(self) -> Sequence[int]:
        return self.vocabulary.counts

    @property
    def eos_id(self) -> int | None:  # type: ignore[override]
        return self.vocabulary.eos_id if self.tokenizer.eos else None

    def whole(self, split: str) -> np.ndarray:
        return self.tokens(split)

    def size(self, split: str) -> int:
        return len(self.tokens(split))

    def has_split(self, split: str) -> bool:
        """Whether the split is a text of its own; `valid` otherwise stands for the test text."""
        return split in self.corpus.splits

    def shares_text(self, *splits: str) -> bool:
        """Whether these splits hold one and the same text."""
        return any(set(splits) <= set(same) for same in self.corpus.same_texts())

    def tokens(self, split: str) -> np.ndarray:
        """The memory-mapped ids of `train`, `valid` or `test`."""
        require_choice("split", split, SPLITS)
        return self._tokens().splits[split if self.has_split(split) else "test"]

    def stream(self, split: str, rank: int = 0, world_size: int = 1, seed: int = 0) -> ChunkStream:
        batch_size = self.batch_size if split == "train" else self.eval_batch_size
        try:
            return ChunkStream(
                self.tokens(split), self.vocabulary.eos_id, batch_size, self.seq_len, rank, world_size
            )
        except ValueError as error:
            key = "data.batch_size" if split == "train" else "data.eval_batch_size"
            raise ValueError(f"the {split} split of {self.name} with {key}={batch_size}: {error}") from None

    def describe(self) -> dict[str, Any]:
        """What a result has to say about its data, in plain values."""
        cached = self._tokens()
        return {
            "name": self.name,
            **self.corpus.identity(),
            "text_checksum": cached.text_checksum,
            "path": str(self.corpus.path),
            **self.tokenizer.state(),
            "vocab_size": len(cached.vocabulary),
            "vocabulary_rule": asdict(self.corpus.rule),
            "tokens": {split: len(ids) for split, ids in cached.splits.items()},
            "unknown_tokens": {
                split: self.unknown_tokens(split) for split in cached.splits if split != "train"
            },
            "valid_is_test": not self.has_split("valid") or self.shares_text("valid", "test"),
        }

    def unknown_tokens(self, split: str) -> int:
        """How many tokens of the split are `<unk>`. The text itself may contain some."""
        return int(self.vocabulary.are_unknown(self.tokens(split)).sum())

    def remarks(self) -> list[str]:
        unknown, tokens = self.unknown_tokens("test"), len(self.tokens("test"))
        if self.corpus.published or not unknown:
            return []
        line = f"unknown words: {100 * unknown / tokens:.1f} % of the test text"
        rule, remedies = self.corpus.rule, ["bring more text"]
        shows_none = rule.min_count == 1 and not self.vocabulary.unknown_share
        if unknown <= (SOME_UNKNOWN if shows_none else MANY_UNKNOWN) * tokens:
            return [line]
        if shows_none:
            remedies.insert(0, "set data.min_count=2, by which training shows unknown words, too")
        if rule.max_size is not None and len(self.vocabulary) >= rule.max_size:
            remedies.insert(0, f"raise data.max_size above {rule.max_size:,}")
        if rule.min_count > 2:  # with 1, training would show no unknown word
            remedies.insert(0, f"lower data.min_count below {rule.min_count}")
        return [
            f"warning: {line}: they are all read as one word, so the perplexity says little; evaluate.py shows the "
            f"perplexity of the known ones; {', or '.join(remedies)}"
        ]

    def baselines(self) -> dict[str, dict[str, float]]:
        return {"unigram": {f"{split}_ppl": self.unigram_ppl(split) for split in ("valid", "test")}}

    def interface(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary.state(), "tokenizer": self.tokenizer.state()}

    def summary(self) -> list[str]:
        tokens = ", ".join(f"{split} {len(ids):,}" for split, ids in self._tokens().splits.items())
        lines = [f"tokens: {tokens}; vocabulary {len(self.vocabulary):,}"]
        if not self.has_split("valid"):
            lines.append("there is no third split: validation reads the test text")
        return [*lines, *(f"warning: {describe_same_text(same)}" for same in self.corpus.same_texts())]

    def unigram_ppl(self, split: str) -> float:
        """Perplexity under the training counts, one added to each: exp(mean(-ln((c_w + 1) / (N + V))))."""
        counts = np.array(self.vocabulary.counts, dtype=np.float64) + 1
        seen = np.bincount(self.tokens(split), minlength=len(counts))
        return float(np.exp(-(seen @ np.log(counts / counts.sum())) / seen.sum()))


def describe_same_text(splits: Sequence[str]) -> str:
    """What it means that these splits are one text, and what to do about it."""
    keys = ", ".join(f"data.{split}" for split in splits[:-1]) + f" and data.{splits[-1]}"
    if "train" in splits:
        of = " and ".join(split for split in splits if split != "train")
        return f"{keys} hold the same text: perplexity on {of} says nothing of text that is new; give other files"
    return f"{keys} hold the same text: the best epoch is chosen on the test text; give another file"


def encode_text(
    path: Path, tokenizer: Tokenizer, vocabulary: Vocabulary
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`encode` for a UTF-8 file, or standard input (`-`). Further errors: as in `read_lines`."""
    return encode(read_lines(path), tokenizer, vocabulary, shown_name(path))


def encode(
    lines: Iterable[tuple[str, bool]], tokenizer: Tokenizer, vocabulary: Vocabulary, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids of a text, whether each of its tokens is read as `<unk>`, and each line's number of tokens.

    lines: as `read_lines` gives them. name: of the text, for errors. A line's `<eos>` is one of its tokens if the
    tokenizer sets one. ValueError: a text without tokens, or a token that is unknown to a vocabulary without `<unk>`.
    """
    ids: list[np.ndarray] = []
    unknown: list[np.ndarray] = []
    numbers = [0]  # numbers: of the tokens of each line, the one that is being read last
    for tokens, ends in tokenizer.blocks(lines):
        try:
            ids.append(np.array(vocabulary.encode(tokens), dtype=vocabulary.dtype))
        except ValueError as error:
            raise ValueError(f"{name}, line {len(numbers)}: {error}") from None
        unknown.append(vocabulary.are_unknown(ids[-1]))
        numbers[-1] += len(tokens)
        if ends:
            numbers.append(0)
    lengths = np.array(numbers[:-1])
    if not lengths.sum():
        raise ValueError(f"{name} holds no tokens: give a text that has some")
    return np.concatenate(ids), np.concatenate(unknown), lengths
