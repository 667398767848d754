"""What a network hears: the words of WAV files or of a corpus with their times, or n-best lists to rescore."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, ListConfig

from hornn.checks import require_choice, require_positive
from hornn.data.base import SPLITS
from hornn.run.process import set_up_process
from hornn.shown import shown
from hornn.speech.data import GRAMMARS, SpeechData
from hornn.use.checkpoints import open_checkpoint
from hornn.use.figures import as_json, files_of, require_target
from hornn.use.sequences import SequenceScorer, open_data
from hornn.use.speech_model import SpeechModel, frames_of, require_number
from hornn.writing import write_atomically


def transcribe(cfg: DictConfig) -> None:
    """Print the words of recordings with their times, or the likeliest texts of each.

    Raises ValueError or OSError, before anything is printed, for what cannot be read.
    """
    set_up_process()
    require_choice("grammar", cfg.grammar, GRAMMARS)
    require_positive(batch_size=cfg.batch_size, seq_len=cfg.seq_len)
    if cfg.nbest is not None:
        require_number(cfg.nbest)
    if cfg.json and cfg.nbest is not None:
        raise ValueError("json=true and nbest= are two forms of what is printed: leave out one of the two")
    if (cfg.wav is None) == (cfg.split is None):
        raise ValueError("give wav=FILE, or split= for the utterances of the corpus: one of the two")
    if cfg.references is not None and cfg.split is None:
        raise ValueError(
            "references= writes what is said in a split, and a WAV file does not say it: leave it out"
        )
    require_target(cfg.references, files_of(cfg, "checkpoint", "wav"))
    model = SpeechModel(open_checkpoint(Path(str(cfg.checkpoint)), cfg.device), cfg.acoustic_scale)
    scale = model.scale(cfg.grammar)
    utterances = of_split(cfg, model.scorer) if cfg.wav is None else of_files(cfg.wav, cfg.nbest is not None)
    scores = model.scores(list(utterances.values()), cfg.batch_size, cfg.seq_len)
    for name, each in zip(utterances, scores, strict=True):
        if cfg.nbest is None:
            words = model.recogniser.decode(scale * each, cfg.grammar)
            text = " ".join(word.text for word in words)
            if cfg.json:
                times = [{"word": word.text, "begin": word.begin, "end": word.end} for word in words]
                source = "file" if cfg.split is None else "utterance"
                print(as_json({source: name, "text": text, "words": times}))
                continue
            print(f"{shown(name)}: {shown(text)}")
            for word in words:
                print(f"{word.begin:8.2f} {word.end:8.2f}  {shown(word.text)}")
        else:
            texts = model.recogniser.nbest(scale * each, cfg.grammar, cfg.nbest)
            if not texts:
                raise ValueError(
                    f"{name}: no text was found at acoustic_scale={scale:g}: give a smaller one, or a longer recording"
                )
            for found in texts:
                print(
                    shown(name),
                    shown(" ".join(found.words)),
                    f"{found.acoustic:.4f}",
                    f"{found.language:.4f}",
                    sep="\t",
                )


def of_files(given: Any, nbest: bool) -> Mapping[str, np.ndarray]:
    """The frames (N, 80) of WAV files, by the names that are given. Errors: as in `frames_of`."""
    names = [str(name) for name in given] if isinstance(given, ListConfig) else [str(given)]
    if not names:
        raise ValueError("wav= is an empty list: give a WAV file")
    if nbest and (spaced := [name for name in names if name.split() != [name]]):
        raise ValueError(
            f"{spaced[0]!r} holds white space, where `rescore` ends an utterance's name: rename the file"
        )
    return dict(zip(names, frames_of(names), strict=True))


def of_split(cfg: DictConfig, scorer: SequenceScorer) -> Mapping[str, np.ndarray]:
    """The frames (N, 80) of the utterances of a split, and what is said in them to a file, where one is given."""
    require_choice("split", cfg.split, SPLITS)
    data = open_data(scorer, cfg.data, cfg.batch_size, cfg.seq_len, files_of(cfg, "references"))
    assert isinstance(data, SpeechData)
    recordings = data.corpus.splits[cfg.split]
    if cfg.references is not None:
        lines = (f"{each.id} {' '.join(each.words)}\n" for each in recordings)
        write_atomically(Path(str(cfg.references)), "".join(lines))
    return dict(zip((each.id for each in recordings), data.prepared.features[cfg.split], strict=True))
