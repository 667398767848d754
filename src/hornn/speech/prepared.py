"""A corpus as the network reads it: features and states of all frames, computed once and kept in one file."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from rich.console import Console
from rich.progress import Progress

from hornn.data.base import SPLITS
from hornn.data.content import CHANGED
from hornn.data.kept_arrays import KeptArrays
from hornn.speech.corpus import SpeechCorpus, naming
from hornn.speech.features import cepstra, filterbank, normalise_speakers, read_wave
from hornn.speech.lexicon import Lexicon, read_lexicon

FORMAT = 2  # raise it when the way from recordings to states changes

Advance = Callable[[int, int], None]  # told how many parts of how many are done


class Aligner(Protocol):
    """A trained acoustic model that says which state each frame is in."""

    @property
    def number(self) -> int:
        """How many states it has."""

    def align(self, cepstra: np.ndarray, words: Sequence[str]) -> np.ndarray:
        """(N, 39) and what was said -> (N,) states."""

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the model is made of."""


# From cepstra and words of the training utterances, by their ids, to a model that aligns: as `hornn.speech.gmm.train`.
Train = Callable[[Mapping[str, np.ndarray], Mapping[str, Sequence[str]], Lexicon, Advance], Aligner]


class Prepared(NamedTuple):
    """Features (N, 80) fp32 and states (N,) of the utterances of each split, in the corpus's order.

    number: of states. model: the arrays of the model that aligned them. checksum: SHA-256 of what they are made of; of
    themselves it would differ between machines, in the last digits of some features.
    """

    features: dict[str, list[np.ndarray]]
    states: dict[str, list[np.ndarray]]
    number: int
    model: dict[str, np.ndarray]
    checksum: str


class SpeechCache:
    """One file for each corpus, by the content of its lists and recordings."""

    def __init__(self, folder: Path, corpus: SpeechCorpus, name: str) -> None:
        self.corpus = corpus
        self.content = content_of(corpus)
        self.kept = KeptArrays(folder, f"speech-{name}", {"format": FORMAT, "content": self.content})

    def read(self) -> Prepared | None:
        """What is kept, or None where it is absent or damaged."""
        if (found := self.kept.read()) is None:
            return None
        about, arrays = found
        try:
            features, states = arrays.pop("features"), arrays.pop("states")
            ends = np.cumsum(arrays.pop("lengths"))
            if not len(features) == len(states) == ends[-1]:
                return None
            numbers = [len(self.corpus.splits[split]) for split in SPLITS]
            each_features, each_states = np.split(features, ends[:-1]), np.split(states, ends[:-1])
            places = np.split(np.arange(len(ends)), np.cumsum(numbers)[:-1])
            return Prepared(
                {
                    split: [each_features[i] for i in place]
                    for split, place in zip(SPLITS, places, strict=True)
                },
                {split: [each_states[i] for i in place] for split, place in zip(SPLITS, places, strict=True)},
                int(about["number"]),
                arrays,
                f"sha256:{self.kept.digest}",
            )
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, train: Train) -> None:
        """Compute features, train the model that aligns and align everything, with a bar that says how far it is.

        Raises ValueError for a recording that cannot be used or aligned and for a corpus that changes meanwhile,
        OSError where the file cannot be written.
        """
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            energies, coefficients = self._features(bar(progress, "features"))
            words = {each.id: each.words for split in SPLITS for each in self.corpus.splits[split]}
            fitted = [each.id for each in self.corpus.splits["train"]]
            model = train(
                {name: coefficients[name] for name in fitted},
                {name: words[name] for name in fitted},
                read_lexicon(self.corpus.dictionary),
                bar(progress, "states"),
            )
            aligned, advance = {}, bar(progress, "alignment")
            for number, name in enumerate(words, start=1):
                with naming(name):
                    aligned[name] = model.align(coefficients[name], words[name])
                advance(number, len(words))
        arrays = {
            "features": np.concatenate([energies[name] for name in words]),
            "states": np.concatenate([aligned[name] for name in words]).astype(np.int32),
            "lengths": np.array([len(energies[name]) for name in words]),
        }
        if content_of(self.corpus) != self.content:
            raise ValueError(f"{self.corpus.dictionary.parent.parent} {CHANGED}")
        self.kept.write("prepared speech", {"number": model.number}, arrays | model.arrays())

    def _features(self, advance: Advance) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """What the network reads and what the Gaussian mixtures read, by utterance, normalised for each speaker."""
        energies, coefficients = dict[str, np.ndarray](), dict[str, np.ndarray]()
        everything = [each for split in SPLITS for each in self.corpus.splits[split]]
        for number, each in enumerate(everything, start=1):
            wave = read_wave(each.path)
            energies[each.id], coefficients[each.id] = filterbank(wave), cepstra(wave)
            advance(number, len(everything))
        speakers = {each.id: each.speaker for each in everything}
        return normalise_speakers(energies, speakers), normalise_speakers(coefficients, speakers, False)


def bar(progress: Progress, what: str) -> Advance:
    """A bar of its own that `Advance` moves."""
    task = progress.add_task(what, total=None)
    return lambda done, of: progress.update(task, completed=done, total=of)


def content_of(corpus: SpeechCorpus) -> str:
    """SHA-256 of all that decides the features and the states: who says what in which split, recordings, dictionary."""
    digest = hashlib.sha256(corpus.dictionary.read_bytes())
    for split in SPLITS:
        for each in corpus.splits[split]:
            digest.update(json.dumps([split, each.id, each.speaker, each.words]).encode())
            digest.update(hashlib.sha256(each.path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"
