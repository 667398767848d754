"""Models of separate sequences, such as music, and their scores on a split."""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from omegaconf import DictConfig
from rich.console import Console

from hornn.baselines.counts import CountModel
from hornn.data.sequences import SequenceData
from hornn.network import SequenceModel
from hornn.result import UTTERANCES
from hornn.use.additions import record, to_record
from hornn.use.corpora import data_of
from hornn.use.figures import files_of, report, require_probabilities, require_target
from hornn.use.pieces import GivenFiles
from hornn.use.posteriors import log_probs_of
from hornn.use.scoring import CHUNK

# Keys of `evaluate` that speak of text, and their neutral values.
OF_TEXT = {"mix": None, "cache": None, "text": None, "dynamic_lr": None, "arpa": None, "precision": "fp32"}


class SequenceScorer(NamedTuple):
    """A network, or a model of counts, that reads separate sequences, and the card of its checkpoint."""

    name: str
    card: Mapping[str, Any]
    model: SequenceModel | CountModel

    @property
    def network(self) -> SequenceModel:
        """ValueError for a model of counts."""
        if not isinstance(self.model, SequenceModel):
            raise ValueError(f"{self.name} holds counts, and this needs a network: give another checkpoint")
        return self.model

    @property
    def predicts(self) -> str:
        """`classes` or `keys` at each step, or what a model of counts has in their place."""
        return (self.model if isinstance(self.model, CountModel) else self.model.head).predicts


class SplitScore(NamedTuple):
    """The nats of each sequence of a split, the number of all targets, and what the accuracy is made of, if known."""

    nats: np.ndarray
    targets: int
    hits: tuple[float, float] = (0.0, 0.0)

    @property
    def mean(self) -> float:
        return float(self.nats.sum()) / self.targets


def require_neutral(cfg: DictConfig, neutral: Mapping[str, Any], kind: str, name: str) -> None:
    """Raise ValueError for a key of a command that is for models of another kind than this one."""
    if given := [key for key, value in neutral.items() if cfg[key] != value]:
        raise ValueError(f"{given[0]}= is for models of {kind}, and {name} is none: leave it out")


def open_data(
    scorer: SequenceScorer, places: DictConfig, batch_size: int, seq_len: int, written: Iterable[Path] = ()
) -> SequenceData:
    """The data that the model was trained on, in batches to score. written, errors: as of `data_of`."""
    data = data_of(scorer.card, places, written)
    wanted = data.counted if isinstance(scorer.model, CountModel) and data.counted else data.predicts
    if (
        not isinstance(data, SequenceData)
        or len(data.counts) != len(scorer.card["counts"])
        or (data.input_width, wanted) != (scorer.card["input_width"], scorer.predicts)
    ):
        raise ValueError(f"the parts of {scorer.name} do not fit the {data.name} corpus: train it anew")
    data.eval_batch_size, data.seq_len = batch_size, seq_len
    return data


def evaluate_sequences(cfg: DictConfig, scorer: SequenceScorer, console: Console) -> None:
    """Print score, accuracy and speed on a split, or on MIDI files. ValueError for keys that speak of text."""
    require_neutral(cfg, OF_TEXT, "text", scorer.name)
    if cfg.midi is None and cfg.frame_length is not None:
        raise ValueError(f"frame_length={cfg.frame_length} is of midi=, which is not given: leave it out")
    if cfg.record and "recogniser" not in scorer.card:
        raise ValueError(
            f"record=true adds what a network of speech heard, and {scorer.name} is none: leave it out"
        )
    path = Path(scorer.name)
    run = to_record(scorer, path) if cfg.record else None
    sizes = cfg.batch_size, cfg.seq_len or CHUNK
    given = (
        None if cfg.midi is None else GivenFiles(cfg.midi, scorer.card, scorer.name, cfg.frame_length, *sizes)
    )
    if given:
        require_target(cfg.result, given.files)
    data = given or open_data(scorer, cfg.data, *sizes, files_of(cfg, "result"))
    units = data.units
    named = units.score.replace(" ", "_")
    started = time.perf_counter()
    score = score_split(scorer.model, data, cfg.split)
    seconds = time.perf_counter() - started
    require_probabilities(score.mean, scorer.name)
    hits, tried = score.hits
    exact = {named: score.mean, **({"accuracy": hits / tried} if tried else {})}
    figures = {
        "checkpoint": scorer.name,
        **(given.described() if given else {"scored": f"{data.name} {cfg.split}"}),
        named: f"{score.mean:.{units.digits}f}",
        **({"accuracy": f"{hits / tried:.2%}"} if tried else {}),
        f"{units.target}s": score.targets,
        f"{units.target}s_per_second": score.targets / seconds,
    }
    beside = (
        given.piece_by_piece(score.nats)
        if given
        else data.examine(cfg.split, partial(log_probs, scorer.model, data))
    )
    report(figures, console, cfg.result, {**exact, **beside.figures})
    for line in beside.lines:
        console.print(line, markup=False)
    if run is not None:
        found = data.judge(partial(log_probs, scorer.model, data)).figures
        record(path, run, {UTTERANCES: found[UTTERANCES]}, console)


def log_probs(model: SequenceModel | CountModel, data: SequenceData, split: str) -> list[np.ndarray]:
    """ln P of each outcome at each step of each sequence of a split, (N, V)."""
    if isinstance(model, CountModel):
        return model.log_probs(data.whole(split))
    return log_probs_of(model, data.scored_stream(split))


@torch.inference_mode()
def score_split(model: SequenceModel | CountModel, data: SequenceData, split: str) -> SplitScore:
    """Every sequence of a split from the initial state, every target once."""
    if isinstance(model, CountModel):
        whole = data.whole(split)
        nll = model.score(whole)
        begins = np.cumsum([0, *map(len, whole[:-1])]) if isinstance(whole, list) else [0]
        return SplitScore(np.add.reduceat(nll, begins), len(nll), model.hits(whole))
    stream = data.scored_stream(split)
    nats, targets, hits = np.zeros(len(stream.examples)), 0, torch.zeros(2, dtype=torch.float64, device="cpu")
    batches = iter(stream.batches)
    for chunk in stream:
        if chunk.first:
            state, batch = model.initial_state(chunk.width), next(batches)
        wanted = chunk.targets.to(model.device)
        with model.evaluating():
            features, state = model(chunk.inputs.to(model.device), state)
            nats[batch] += model.head.nll(features, wanted).sum(0, dtype=torch.float64).cpu().numpy()
            hits += model.head.hits(features, wanted).cpu()
        targets += chunk.count
    return SplitScore(nats, targets, (float(hits[0]), float(hits[1])))
