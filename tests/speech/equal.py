"""Alignments for tests: the states of an utterance's phones take equally long, whatever is heard."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hornn.speech.data import SpeechData
from hornn.speech.lexicon import Lexicon
from speech.tiny import write_corpus


class EqualAlignment:
    """The states of the phones, after silence and before silence, share the frames."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.number = lexicon.number
        self.phones_of = {lexicon.words[word]: phones for word, phones in lexicon.pronunciations}

    def align(self, cepstra: np.ndarray, words: Sequence[str]) -> np.ndarray:
        states = self.lexicon.states([0, *(phone for word in words for phone in self.phones_of[word]), 0])
        return np.array([states[frame * len(states) // len(cepstra)] for frame in range(len(cepstra))])

    def arrays(self) -> dict[str, np.ndarray]:
        return {"stay": np.full(self.number, 0.75)}


def train_equal(
    cepstra: Mapping[str, np.ndarray], words: Mapping[str, Any], lexicon: Lexicon, advance: Any
) -> EqualAlignment:
    advance(1, 1)
    return EqualAlignment(lexicon)


def prepare_tiny(folder: Path) -> list[str]:
    """Write the tiny corpus, aligned so, and return the words of a command that trains on it."""
    write_corpus(folder / "tiny")
    SpeechData(folder / "tiny", folder / "cache", train_equal, 5, (1, 20, 1)).prepare_data()
    return ["data=an4", f"data.root={folder}", "data.name=tiny", f"data.cache_dir={folder / 'cache'}"]
