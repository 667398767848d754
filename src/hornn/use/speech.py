"""What a network hears: the words of WAV files or of a corpus with their times, or n-best lists to rescore."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from omegaconf import DictConfig, ListConfig

from hornn.checks import require_choice, require_positive, require_range
from hornn.data.base import IGNORE, SPLITS
from hornn.data.sequences import Example, SequenceStream
from hornn.network import SequenceModel
from hornn.result import read_result, write_atomically
from hornn.run.process import set_up_process
from hornn.shown import shown
from hornn.speech.data import GRAMMARS, SpeechData
from hornn.speech.features import filterbank, normalise, read_wave
from hornn.speech.recogniser import Recogniser, acoustic_scores, from_plain
from hornn.use.checkpoints import open_checkpoint
from hornn.use.figures import files_of, require_target
from hornn.use.posteriors import log_probs_of
from hornn.use.sequences import SequenceScorer, open_data

MOST = 2**31 - 1  # texts of an utterance that can be asked for


class Listener(NamedTuple):
    """A network, the search for words in what it says, how many frames late it says it, and its states' counts."""

    network: SequenceModel
    recogniser: Recogniser
    delay: int
    counts: Sequence[int]

    def scores(self, features: Sequence[np.ndarray], batch_size: int, seq_len: int) -> list[np.ndarray]:
        """ln p(s | x) - ln p(s) of each utterance, (N, S), from its frames (N, 80)."""
        examples = [
            Example(np.pad(each, ((0, self.delay), (0, 0))), np.full(len(each) + self.delay, IGNORE))
            for each in features
        ]
        said = log_probs_of(self.network, SequenceStream(examples, batch_size, seq_len))
        return [acoustic_scores(each[self.delay :], self.counts) for each in said]


def transcribe(cfg: DictConfig) -> None:
    """Print the words of recordings with their times, or the likeliest texts of each.

    Raises ValueError or OSError, before anything is printed, for what cannot be read.
    """
    set_up_process()
    require_choice("grammar", cfg.grammar, GRAMMARS)
    require_positive(batch_size=cfg.batch_size, seq_len=cfg.seq_len)
    if cfg.nbest is not None:
        fits = type(cfg.nbest) is int and 1 <= cfg.nbest <= MOST
        require_range("nbest", cfg.nbest, f"a whole number from 1 to {MOST}", fits)
    if cfg.json and cfg.nbest is not None:
        raise ValueError("json=true and nbest= are two forms of what is printed: leave out one of the two")
    if (cfg.wav is None) == (cfg.split is None):
        raise ValueError("give wav=FILE, or split= for the utterances of the corpus: one of the two")
    if cfg.references is not None and cfg.split is None:
        raise ValueError(
            "references= writes what is said in a split, and a WAV file does not say it: leave it out"
        )
    require_target(cfg.references, files_of(cfg, "checkpoint", "wav"))
    scorer = open_speech(cfg.checkpoint, cfg.device)
    listener = listener_of(scorer)
    scale = scale_of(cfg, Path(str(cfg.checkpoint)))
    utterances = of_split(cfg, scorer) if cfg.wav is None else of_files(cfg.wav, cfg.nbest is not None)
    scores = listener.scores(list(utterances.values()), cfg.batch_size, cfg.seq_len)
    for name, each in zip(utterances, scores, strict=True):
        if cfg.nbest is None:
            words = listener.recogniser.decode(scale * each, cfg.grammar)
            text = " ".join(word.text for word in words)
            if cfg.json:
                times = [{"word": word.text, "begin": word.begin, "end": word.end} for word in words]
                source = "file" if cfg.split is None else "utterance"
                print(json.dumps({source: name, "text": text, "words": times}))
                continue
            print(f"{name}: {shown(text)}")
            for word in words:
                print(f"{word.begin:8.2f} {word.end:8.2f}  {shown(word.text)}")
        else:
            texts = listener.recogniser.nbest(scale * each, cfg.grammar, cfg.nbest)
            if not texts:
                raise ValueError(f"{name}: no text was found at acoustic_scale={scale:g}: give a smaller one")
            for found in texts:
                print(
                    name,
                    shown(" ".join(found.words)),
                    f"{found.acoustic:.4f}",
                    f"{found.language:.4f}",
                    sep="\t",
                )


def open_speech(checkpoint: Any, device: str) -> SequenceScorer:
    """A network of speech. ValueError for a checkpoint of anything else; other errors: as in `open_checkpoint`."""
    opened = open_checkpoint(Path(str(checkpoint)), device)
    if not isinstance(opened, SequenceScorer) or "recogniser" not in opened.card:
        raise ValueError(f"{checkpoint} is no network of speech: give one that was trained with data=an4")
    return opened


def listener_of(scorer: SequenceScorer) -> Listener:
    """What a checkpoint needs beside its network to hear words. ValueError for parts that do not fit."""
    card = scorer.card
    recogniser, delay, counts = from_plain(card["recogniser"]), card.get("delay"), card["counts"]
    if type(delay) is not int or not 0 <= delay <= 1000 or len(counts) != recogniser.lexicon.number:
        raise ValueError(f"the parts of {scorer.name} do not fit: train it anew")
    return Listener(scorer.network, recogniser, delay, counts)


def scale_of(cfg: DictConfig, checkpoint: Path) -> float:
    """The acoustic scale that is given, or that validation chose in the run of the checkpoint."""
    scale = cfg.acoustic_scale
    if scale is None:
        scale = (read_result(checkpoint.parent) or {}).get(f"acoustic_scale{GRAMMARS[cfg.grammar]}")
        if scale is None:
            raise ValueError(
                f"no result.json beside {checkpoint} says which acoustic scale validation chose: put the one of its "
                "run there, or give acoustic_scale="
            )
    number = type(scale) in (int, float)
    require_range(
        "acoustic_scale", scale if number else None, "> 0 and finite", number and 0 < scale < math.inf
    )
    return float(scale)


def of_files(given: Any, nbest: bool) -> Mapping[str, np.ndarray]:
    """The frames (N, 80) of WAV files, which count as one speaker's. ValueError for one that comes twice."""
    names = [str(name) for name in given] if isinstance(given, ListConfig) else [str(given)]
    if not names:
        raise ValueError("wav= is an empty list: give a WAV file")
    if nbest and (spaced := [name for name in names if name.split() != [name]]):
        raise ValueError(
            f"{spaced[0]!r} holds white space, where `rescore` ends an utterance's name: rename the file"
        )
    if len({Path(name).resolve() for name in names}) < len(names):
        raise ValueError("wav= names a file twice: give each once")
    frames = normalise([filterbank(read_wave(Path(name))) for name in names])
    return dict(zip(names, frames, strict=True))


def of_split(cfg: DictConfig, scorer: SequenceScorer) -> Mapping[str, np.ndarray]:
    """The frames (N, 80) of the utterances of a split, and what is said in them to a file, where one is given."""
    require_choice("split", cfg.split, SPLITS)
    data = open_data(scorer, cfg.data, cfg.batch_size, cfg.seq_len)
    assert isinstance(data, SpeechData)
    recordings = data.corpus.splits[cfg.split]
    if cfg.references is not None:
        lines = (f"{each.id} {' '.join(each.words)}\n" for each in recordings)
        write_atomically(Path(str(cfg.references)), "".join(lines))
    return dict(zip((each.id for each in recordings), data.prepared.features[cfg.split], strict=True))
