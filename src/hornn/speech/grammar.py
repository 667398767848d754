"""How words follow each other in what is said: two n-gram models, as text in ARPA's format.

`shipped` is the language model of the corpus. CMU AN4's gives all words alike the same probability, so word errors with
it measure acoustics. `bigram` is estimated by Kneser-Ney smoothing from the training transcripts.
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hornn.baselines.arpa import DATA, arpa_lines, parse_arpa
from hornn.baselines.ngram import BackoffModel, KneserNey
from hornn.data.vocabulary import EOS
from hornn.speech.lexicon import Lexicon

SHIPPED, BIGRAM = "shipped", "bigram"


class Grammar(NamedTuple):
    """An n-gram model, and the words that its ids mean; the last word of a sentence is `<eos>`."""

    words: list[str]
    model: BackoffModel

    def log_prob(self, words: Sequence[str]) -> float:
        """ln P of a sentence with its end."""
        ids = [self.words.index(word) for word in [*words, EOS]]
        return -float(self.model.score(np.array(ids)).sum())


def read_shipped(path: Path) -> str:
    """The ARPA text of a corpus's language model, from its last \\data\\ on: a comment before it may hold another.

    Raises ValueError for a file that is no model of sentences, OSError where it cannot be read.
    """
    content = path.read_bytes()
    try:
        text = content[max(content.rfind(DATA), 0) :].decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason}): save it as such") from error
    parse(text, str(path))
    return text


def estimate_bigram(lexicon: Lexicon, sentences: Sequence[Sequence[str]]) -> tuple[str, list[str]]:
    """A bigram of these sentences over the words of the lexicon, by Kneser-Ney smoothing: ARPA text and notes."""
    names = [*lexicon.words, EOS]
    ids = {name: i for i, name in enumerate(names)}
    model = KneserNey(len(names), ids[EOS], order=2)
    model.fit(
        np.array([ids[word] for words in sentences for word in [*words, EOS]]), np.zeros(0, dtype=np.int64)
    )
    return "".join(arpa_lines(model, names)), model.notes


def parse(text: str, name: str) -> Grammar:
    """The grammar of an ARPA text. It need not be normalised: AN4's gives the empty sentence a probability of its own.

    name: of the text, for messages. Raises ValueError for a text that is none, and where no sentence can end.
    """
    words, model = parse_arpa(name, BytesIO(text.encode()))
    if model.eos_id is None:
        raise ValueError(f"{name} has no </s>, so no sentence can end: give a model of sentences")
    return Grammar(words, model)
