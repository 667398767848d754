"""Alignments for tests: the states of an utterance's phones take equally long, whatever is heard."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hornn.speech.corpus import SpeechCorpus, lines_of


class EqualAlignment:
    """State 3 p + k of phone p, where phone 0 is silence, before the first word and after the last."""

    def __init__(self, corpus: SpeechCorpus) -> None:
        self.phones_of = {line.split()[0]: line.split()[1:] for line in lines_of(corpus.dictionary)}
        self.phones = ["SIL", *sorted({phone for phones in self.phones_of.values() for phone in phones})]
        self.number = 3 * len(self.phones)

    def align(self, cepstra: np.ndarray, words: tuple[str, ...]) -> np.ndarray:
        said = ["SIL", *(phone for word in words for phone in self.phones_of[word]), "SIL"]
        states = [3 * self.phones.index(phone) + k for phone in said for k in range(3)]
        return np.array([states[frame * len(states) // len(cepstra)] for frame in range(len(cepstra))])

    def arrays(self) -> dict[str, np.ndarray]:
        return {"model.note": np.arange(3)}


def train_equal(
    cepstra: Mapping[str, np.ndarray], words: Mapping[str, Any], corpus: SpeechCorpus, advance: Any
) -> EqualAlignment:
    advance(1, 1)
    return EqualAlignment(corpus)
