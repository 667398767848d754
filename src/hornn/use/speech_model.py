"""A trained network of speech in Python: `hornn.load_speech` and what can be done with what it gives."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from hornn.card import looked_up_in
from hornn.checks import is_number, is_whole, require_choice, require_path, require_positive, require_range
from hornn.data.base import IGNORE
from hornn.data.sequences import Example, SequenceStream
from hornn.network import SequenceModel
from hornn.result import read_result
from hornn.speech.data import GRAMMARS, MOST_DELAY
from hornn.speech.features import filterbank, normalise, read_wave
from hornn.speech.grammar import SHIPPED
from hornn.speech.recogniser import Hypothesis, Word, acoustic_scores, from_plain
from hornn.use.additions import is_of
from hornn.use.checkpoints import Opened, open_checkpoint
from hornn.use.figures import require_each_once
from hornn.use.posteriors import log_probs_of
from hornn.use.sequences import SequenceScorer

BATCH_SIZE = 26  # utterances that are read side by side; no word depends on it
SEQ_LEN = 1000  # frames of an utterance that are read at a time; likewise
MOST = 2**31 - 1  # texts of an utterance that can be asked for


class Transcript(NamedTuple):
    """What is heard in a recording: the words, each with its begin and end in seconds."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


class SpeechModel:
    """A network and the search for words in what it says of each frame.

    acoustic_scale: of the network's scores; None: what validation chose, from the result.json beside the checkpoint.
    Raises ValueError for a model of something else and for parts that do not fit.
    """

    def __init__(self, scorer: Opened, acoustic_scale: float | None = None) -> None:
        if not isinstance(scorer, SequenceScorer) or "recogniser" not in scorer.card:
            raise ValueError(
                f"{scorer.name} is no network of speech: give one that was trained with data=an4"
            )
        card = scorer.card
        delay: Any = card.get("delay")
        self.recogniser, self.counts = from_plain(card["recogniser"]), card["counts"]
        if (
            type(delay) is not int
            or not 0 <= delay <= MOST_DELAY
            or len(self.counts) != self.recogniser.lexicon.number
            or set(self.recogniser.grammars) != set(GRAMMARS)
        ):
            raise ValueError(f"the parts of {scorer.name} do not fit: train it anew")
        self.delay = delay
        self.scorer = scorer
        self.acoustic_scale = None if acoustic_scale is None else require_scale(acoustic_scale)
        self.folder = (
            Path(scorer.name).absolute().parent
        )  # of the result that says which scale validation chose

    @property
    def network(self) -> SequenceModel:
        return self.scorer.network

    def transcribe(
        self, recordings: Sequence[str | Path], grammar: str = SHIPPED, batch_size: int = BATCH_SIZE
    ) -> list[Transcript]:
        """The words of WAV files of 16 kHz with one channel, which count as one speaker's.

        grammar: `shipped` or `bigram`. Raises ValueError for a recording of another form or one that comes twice, and
        where no acoustic scale is known; OSError where a file cannot be read.
        """
        scores = self.scaled_scores(recordings, grammar, batch_size)
        return [Transcript(tuple(self.recogniser.decode(each, grammar))) for each in scores]

    def nbest(
        self,
        recordings: Sequence[str | Path],
        number: int,
        grammar: str = SHIPPED,
        batch_size: int = BATCH_SIZE,
    ) -> list[list[Hypothesis]]:
        """At most `number` of the likeliest texts of each recording, with their scores. Errors: as in `transcribe`."""
        require_number(number)
        scores = self.scaled_scores(recordings, grammar, batch_size)
        return [self.recogniser.nbest(each, grammar, number) for each in scores]

    def scaled_scores(
        self, recordings: Sequence[str | Path], grammar: str, batch_size: int
    ) -> list[np.ndarray]:
        """The `scores` of WAV files, times the acoustic scale of a grammar: what the search for words takes."""
        scale = self.scale(grammar)
        return [scale * each for each in self.scores(frames_of(recordings), batch_size)]

    def scale(self, grammar: str) -> float:
        """The acoustic scale that is given, or that validation chose in the run of the checkpoint, for a grammar."""
        require_choice("grammar", grammar, GRAMMARS)
        scale: Any = self.acoustic_scale
        if scale is None:
            result = read_result(self.folder) or {}
            scale = (
                result.get(f"acoustic_scale{GRAMMARS[grammar]}") if is_of(result, self.scorer.card) else None
            )
        if scale is None:
            raise ValueError(
                f"no result.json beside {self.scorer.name} says which acoustic scale validation chose: put the one of "
                "its run there, or give acoustic_scale="
            )
        return require_scale(scale)

    def scores(
        self, features: Sequence[np.ndarray], batch_size: int, seq_len: int = SEQ_LEN
    ) -> list[np.ndarray]:
        """ln p(s | x) - ln p(s) of each utterance, (N, S), from its frames (N, 80)."""
        require_positive(batch_size=batch_size, seq_len=seq_len)
        examples = [
            Example(np.pad(each, ((0, self.delay), (0, 0))), np.full(len(each) + self.delay, IGNORE))
            for each in features
        ]
        said = log_probs_of(self.network, SequenceStream(examples, batch_size, seq_len))
        return [acoustic_scores(each[self.delay :], self.counts) for each in said]


def require_scale(scale: Any) -> float:
    """An acoustic scale. Raises ValueError for what is none."""
    if not (is_number(scale) and 0 < scale < math.inf):
        raise ValueError(f"acoustic_scale must be > 0 and finite, got {scale!r:.80}")
    return float(scale)


def require_number(number: Any) -> None:
    """Raise ValueError for a number of texts that nobody can be given."""
    fits = is_whole(number) and 1 <= number <= MOST
    require_range("nbest", number, f"a whole number from 1 to {MOST}", fits)


def frames_of(recordings: Sequence[str | Path]) -> list[np.ndarray]:
    """The frames (N, 80) of WAV files, which count as one speaker's. Errors: as in `SpeechModel.transcribe`."""
    if isinstance(recordings, str | Path) or not isinstance(recordings, Sequence):
        got = str(recordings) if isinstance(recordings, Path) else recordings
        raise ValueError(f"recordings must be a list of WAV files, got {got!r:.80}: put one file into a list")
    if not recordings:
        raise ValueError("recordings is an empty list: give a WAV file")
    for each in recordings:
        require_path("a list of WAV files", each)
    paths = [Path(each) for each in recordings]
    require_each_once("wav", paths)
    return normalise([filterbank(read_wave(path)) for path in paths])


def load_speech(
    path: str | Path,
    acoustic_scale: float | None = None,
    device: str | torch.device = "cpu",
    config_dir: str | Path | None = None,
) -> SpeechModel:
    """The network of speech of a checkpoint.

    acoustic_scale: as of `SpeechModel`. device, config_dir: as of `hornn.load`. Raises FileNotFoundError or ValueError
    for a file that is absent, damaged or holds another model.
    """
    require_path("load_speech", path)
    with looked_up_in(config_dir):
        return SpeechModel(open_checkpoint(Path(path), device), acoustic_scale)
