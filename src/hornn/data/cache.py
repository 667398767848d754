"""Token ids on disk: tokenised once, memory-mapped ever after."""

import hashlib
import json
import sys
import zlib
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hornn.data.content import CHANGED
from hornn.data.corpus import Corpus
from hornn.data.vocabulary import Vocabulary
from hornn.writing import replacing

FORMAT = 1  # raise it when the files' layout or a corpus's way to its tokens changes


def source_of(kind: type) -> str:
    """The SHA-256 of the files of a corpus class of a user's own: an edited one may give other tokens. Else empty."""
    names = dict.fromkeys(
        each.__module__ for each in kind.__mro__ if not each.__module__.startswith("hornn.")
    )
    files = [
        getattr(sys.modules.get(name), "__file__", None) for name in names if name not in ("abc", "builtins")
    ]
    sources = [Path(file).read_bytes() for file in files if file]
    return hashlib.sha256(b"".join(sources)).hexdigest() if sources else ""


class CachedTokens(NamedTuple):
    """The ids of each split, memory-mapped, with their vocabulary and the SHA-256 of the tokens as text."""

    vocabulary: Vocabulary
    splits: dict[str, np.ndarray]
    text_checksum: str


class TokenCache:
    """Two files per corpus, vocabulary rule and tokenizer: the ids, and a JSON that describes them.

    The ids of all splits follow each other in one file of uint16 or int32. The JSON is written last, and both
    are moved into place whole, so processes that build the same cache at once do each other no harm.
    """

    def __init__(self, folder: Path, corpus: Corpus) -> None:
        self.folder = folder
        self.corpus = corpus
        self.key: dict[str, Any] = {
            "format": FORMAT,
            "name": corpus.name,
            "splits": list(corpus.splits),
            "rule": asdict(corpus.rule),
            "tokenizer": corpus.tokenizer.state(),
            **corpus.identity(),
        }
        if own := source_of(type(corpus)):
            self.key["code"] = own
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()
        self.ids_path = folder / f"{corpus.name}-{digest[:16]}.ids"
        self.json_path = self.ids_path.with_suffix(".json")

    def read(self) -> CachedTokens | None:
        """The cached tokens, or None where they are absent or damaged."""
        try:
            about = json.loads(self.json_path.read_text("utf-8"))
            vocabulary = Vocabulary.from_state(about["vocabulary"])
            ids = np.memmap(self.ids_path, dtype=vocabulary.dtype, mode="r")
            if (
                about["key"] != self.key
                or len(ids) != sum(about["lengths"].values())
                or about["crc32"] != zlib.crc32(ids.data)
            ):
                return None
            splits, start = {}, 0
            for split, length in about["lengths"].items():
                splits[split] = ids[start : start + length]
                start += length
            return CachedTokens(vocabulary, splits, about["text_checksum"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self) -> None:
        """Tokenise the corpus: once over the training text for the vocabulary, once over all for the ids."""
        counts: Counter[str] = Counter()
        for block in self.corpus.tokens("train"):
            counts.update(block)
        self._demand_tokens("train", counts.total())
        vocabulary = self.corpus.rule.build(counts)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.ids_path) as ids_file:
                about = self._write_ids(ids_file, vocabulary)
            with replacing(self.json_path) as json_file:
                json_file.write(json.dumps(about, ensure_ascii=False).encode())
        except OSError as error:
            raise OSError(
                f"cannot write the token cache into {self.folder} ({error}): "
                "set data.cache_dir to a folder that can be written"
            ) from error

    def _write_ids(self, file: Any, vocabulary: Vocabulary) -> dict[str, Any]:
        lengths = dict.fromkeys(self.corpus.splits, 0)
        crc = 0
        text = hashlib.sha256()
        for split in self.corpus.splits:
            for block in self.corpus.tokens(split):
                if not block:
                    continue
                data = np.array(vocabulary.encode(block), dtype=vocabulary.dtype).tobytes()
                file.write(data)
                crc = zlib.crc32(data, crc)
                text.update(("\n".join(block) + "\n").encode())
                lengths[split] += len(block)
            self._demand_tokens(split, lengths[split])
        if changed := self.corpus.changed_since(str(self.key.get("checksum", ""))):
            raise ValueError(f"{', '.join(changed)} {CHANGED}")
        return {
            "key": self.key,
            "lengths": lengths,
            "crc32": crc,
            "text_checksum": f"sha256:{text.hexdigest()}",
            "vocabulary": vocabulary.state(),
        }

    def _demand_tokens(self, split: str, number: int) -> None:
        if not number:
            raise ValueError(
                f"the {split} split of {self.corpus.name} ({self.corpus.path_of(split)}) holds no tokens: give it text"
            )
