"""Models of separate sequences, such as music: opened from a checkpoint, and scored on a split."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from omegaconf import DictConfig
from rich.console import Console

from hornn.baselines.counts import CountModel
from hornn.build import holds_counts, rebuild_counts, rebuild_data, rebuild_network
from hornn.checkpoint import CARD
from hornn.data.base import Data
from hornn.data.sequences import SequenceStream
from hornn.network import SequenceModel
from hornn.result import NAME, UTTERANCES, require_writable, write_result
from hornn.run.composed import as_dict
from hornn.use.figures import report, require_probabilities
from hornn.use.posteriors import log_probs_of
from hornn.use.recorded import result_beside
from hornn.use.scorers import NoModelOfText, make_ready, weights_of_network

# Keys of `evaluate` that speak of text, and their neutral values.
OF_TEXT = {"mix": None, "cache": None, "text": None, "dynamic_lr": None, "arpa": None}


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


class Score(NamedTuple):
    """Of a split: nats summed over its targets, their number, and what the accuracy is made of, if it is known."""

    nats: float
    targets: int
    hits: tuple[float, float] = (0.0, 0.0)

    @property
    def mean(self) -> float:
        return self.nats / self.targets


def open_sequences(found: NoModelOfText, device: str) -> SequenceScorer:
    """The model of separate sequences that a checkpoint was found to hold. Errors: as in `hornn.use.scorers.load`."""
    path, card = found.path, found.checkpoint[CARD]
    try:
        counts, width, state = card["counts"], card["input_width"], found.checkpoint["state_dict"]
        if not (isinstance(counts, list) and counts and all(type(each) is int for each in [*counts, width])):
            raise TypeError("its counts are no whole numbers")
        if holds_counts(card):
            model = rebuild_counts(card, len(counts), None)
            model.load_state({name: np.asarray(value) for name, value in state.items()})
            return SequenceScorer(str(path), card, model)
        network = rebuild_network(path, card, counts, weights_of_network(state), width)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"checkpoint {path} lacks a part of a model ({error!r}): train it anew") from error
    make_ready(network, device)
    return SequenceScorer(str(path), card, network)


def open_data(scorer: SequenceScorer, places: DictConfig, batch_size: int, seq_len: int) -> Data:
    """The data that the model was trained on. Raises ValueError where those at hand are others."""
    data = rebuild_data(scorer.card, as_dict(places))
    data.eval_batch_size, data.seq_len = batch_size, seq_len
    data.prepare_data()
    data.setup()
    here, then = data.describe()["text_checksum"], scorer.card["data"]["text_checksum"]
    if here != then:
        raise ValueError(
            f"the {data.name} data on this machine are not those that this checkpoint was trained on "
            f"(checksum {here}, then {then}): give the same ones"
        )
    return data


def evaluate_sequences(cfg: DictConfig, scorer: SequenceScorer, console: Console) -> None:
    """Print score, accuracy and speed on a split. ValueError for keys that speak of text."""
    if given := [key for key, neutral in OF_TEXT.items() if cfg[key] != neutral]:
        raise ValueError(f"{given[0]}= is for models of text, and {scorer.name} is none: leave it out")
    if cfg.record and "recogniser" not in scorer.card:
        raise ValueError(
            f"record=true adds what a network of speech heard, and {scorer.name} is none: leave it out"
        )
    path = Path(scorer.name)
    run = result_beside(scorer.card, path) if cfg.record else None
    if run is not None:
        require_writable(path.parent / NAME)
    data = open_data(scorer, cfg.data, cfg.batch_size, cfg.seq_len)
    units = data.units
    started = time.perf_counter()
    score = score_split(scorer.model, data, cfg.split)
    seconds = time.perf_counter() - started
    require_probabilities(score.mean, scorer.name)
    hits, tried = score.hits
    exact = {units.score: score.mean, **({"accuracy": hits / tried} if tried else {})}
    figures = {
        "checkpoint": scorer.name,
        "scored": f"{data.name} {cfg.split}",
        units.score: f"{score.mean:.{units.digits}f}",
        **({"accuracy": f"{hits / tried:.2%}"} if tried else {}),
        f"{units.target}s": score.targets,
        f"{units.target}s per second": score.targets / seconds,
    }
    beside = data.examine(cfg.split, partial(log_probs, scorer.model, data))
    report(figures, console, cfg.result, {**exact, **beside.figures})
    for line in beside.lines:
        console.print(line, markup=False)
    if run is not None:
        found = data.judge(partial(log_probs, scorer.model, data)).figures
        write_result(path.parent, {**run, UTTERANCES: found[UTTERANCES]})
        console.print(f"added to {path.parent / NAME}", markup=False)


def log_probs(model: SequenceModel | CountModel, data: Data, split: str) -> list[np.ndarray]:
    """ln P of each outcome at each step of each sequence of a split, (N, V)."""
    if isinstance(model, CountModel):
        return model.log_probs(data.whole(split))
    stream = data.stream(split)
    assert isinstance(stream, SequenceStream)
    return log_probs_of(model, stream)


@torch.inference_mode()
def score_split(model: SequenceModel | CountModel, data: Data, split: str) -> Score:
    """Every sequence of a split from the initial state, every target once."""
    if isinstance(model, CountModel):
        whole = data.whole(split)
        nll = model.score(whole)
        return Score(float(nll.sum()), len(nll), model.hits(whole))
    nats, targets, hits = 0.0, 0, torch.zeros(2, dtype=torch.float64)
    for chunk in data.stream(split):
        if chunk.first:
            state = model.initial_state(chunk.width)
        wanted = chunk.targets.to(model.device)
        features, state = model(chunk.inputs.to(model.device), state)
        nats += float(model.head.nll(features, wanted).sum(dtype=torch.float64))
        targets += chunk.count
        hits += model.head.hits(features, wanted).cpu()
    return Score(nats, targets, (float(hits[0]), float(hits[1])))
