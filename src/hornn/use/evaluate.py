"""Scores a corpus or a text with a trained model, or with several mixed."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, ListConfig

from hornn.baselines.arpa import write_arpa
from hornn.baselines.cache import require_lengths
from hornn.baselines.ngram import BackoffModel
from hornn.checks import require_choice, require_positive
from hornn.data.base import SPLITS
from hornn.data.lines import shown_name
from hornn.data.text import encode_text
from hornn.data.tokenizer import Tokenizer
from hornn.metrics import perplexity
from hornn.places import OWN_TEXT
from hornn.run.process import set_up_process
from hornn.run.provenance import commit
from hornn.use.additions import record, to_record
from hornn.use.checkpoints import open_checkpoint, require_precision_of, require_text
from hornn.use.corpora import chosen_on, corpus_of, open_corpus
from hornn.use.figures import (
    console_of_texts,
    figures_of_text,
    files_of,
    report,
    require_probabilities,
    require_target,
    text_of,
    warn_of_unknown,
)
from hornn.use.opening import mix, names_of, paths_of, weights_of
from hornn.use.scorers import CountScorer, NetworkScorer, Scorer
from hornn.use.scoring import CHUNK
from hornn.use.sequences import SequenceScorer, evaluate_sequences, require_neutral

# Keys that speak of music, and their neutral values.
OF_MUSIC = {"midi": None, "frame_length": None}

console = console_of_texts()


def evaluate(cfg: DictConfig) -> None:
    """Print perplexity, tokens outside the vocabulary and speed of a model, or a mixture, on a split or a text file.

    With `arpa` the n-grams of a model are written instead. Raises ValueError or OSError for what cannot be scored,
    before anything is.
    """
    set_up_process()
    check_options(cfg)
    split = cfg.split = cfg.split or "test"
    paths, rates = paths_of(cfg), rates_of(cfg)
    opened = [open_checkpoint(path, cfg.device) for path in paths]
    if len(opened) == 1 and isinstance(opened[0], SequenceScorer):
        evaluate_sequences(cfg, opened[0], console)
        return
    scorers = [require_text(each) for each in opened]
    require_neutral(cfg, OF_MUSIC, "music", scorers[0].name)
    if cfg.arpa is not None:
        report(export(scorers[0], Path(str(cfg.arpa))), console, cfg.result)
        return
    require_precision_of(scorers, cfg.precision)
    for scorer in scorers:
        if isinstance(scorer, NetworkScorer):
            scorer.prepare(cfg.batch_size, cfg.seq_len, rates[0] if rates else None, cfg.precision)
        elif cfg.dynamic_lr is not None:
            raise ValueError(
                f"dynamic_lr= updates the weights of a network, and {scorer.name} counts: leave it out"
            )
    if (cfg.batch_size != 1 or cfg.seq_len is not None) and not any(
        isinstance(scorer, NetworkScorer) for scorer in scorers
    ):
        raise ValueError(
            f"batch_size= and seq_len= say how a network reads, and {scorers[0].name} counts: leave them out"
        )
    run = run_to_record(cfg, scorers[0]) if cfg.record else None
    program = commit() if cfg.record else {}
    lengths = () if cfg.cache is None else require_lengths("cache", cfg.cache)
    model: Scorer = mix(scorers, lengths, cfg) or scorers[0]
    if cfg.text is None:
        ids = open_corpus(model, cfg).tokens(split)
        unknown = model.vocabulary.are_unknown(ids)
    else:
        ids, unknown, _ = encode_text(text_of(cfg, "text"), model.tokenizer, model.vocabulary)
    tried = (
        choose_rate(model, rates, open_corpus(model, cfg).tokens("valid")) if len(rates) > 1 or run else {}
    )
    started = time.perf_counter()
    scores = model.score(ids)
    seconds = time.perf_counter() - started
    mean = float(scores.sum()) / len(ids)
    lr = model.dynamic_lr if isinstance(model, NetworkScorer) else None
    require_probabilities(mean, model.name, lr)
    figures = {
        **names_of(model),
        "scored": shown_name(Path(cfg.text)) if cfg.text else f"{corpus_of(model)['name']} {split}",
        **figures_of_text(
            float(scores.sum()),
            float(scores[~unknown].sum()),
            len(ids),
            int(unknown.sum()),
            model.tokenizer.unit,
        ),
        "read_as": model.read_as,
        "precision": model.precision,
        "tokens_per_second": len(ids) / seconds,
        **weights_of(model),
        **({"validation_by_rate": tried, "rate_chosen_on": chosen_on(model)} if tried else {}),
    }
    report(figures, console, cfg.result)
    warn_of_unknown(figures, model.vocabulary)
    if run is not None:
        assert isinstance(model, NetworkScorer)
        scored = {
            "lr": lr,
            "seq_len": model.seq_len,
            "valid_ppl_by_lr": tried,
            "valid_ppl": tried[str(lr)],
            "test_ppl": figures["perplexity"],
        }
        record(paths[0], run, {"dynamic": {**scored, **program}}, console)


def run_to_record(cfg: DictConfig, scorer: Scorer) -> dict[str, Any]:
    """The result that dynamic evaluation adds to. ValueError where there is none, or no test split is scored."""
    if cfg.dynamic_lr is None or cfg.text is not None or cfg.split != "test":
        raise ValueError(
            "record=true adds the score of the test split with dynamic evaluation to the run's result: give "
            "dynamic_lr=RATE or a list of rates, and leave out text= and split="
        )
    return to_record(scorer, Path(scorer.name))


def check_options(cfg: DictConfig) -> None:
    """Refuse what no model could do, and files that cannot be written."""
    require_positive(batch_size=cfg.batch_size, seq_len=CHUNK if cfg.seq_len is None else cfg.seq_len)
    if cfg.split is not None:
        require_choice("split", cfg.split, SPLITS)
    others = ("mix", "cache", "text", "midi", "dynamic_lr")
    if cfg.arpa is not None and (any(cfg[key] is not None for key in (*others, "split")) or cfg.record):
        raise ValueError(
            "arpa= writes the n-grams of one model and scores nothing: give its checkpoint= and arpa= alone"
        )
    if cfg.dynamic_lr is not None and cfg.batch_size != 1:
        raise ValueError("dynamic_lr= learns from the text in its order: leave out batch_size=")
    for key in ("text", "midi"):
        if cfg[key] is not None and cfg.split is not None:
            raise ValueError(
                f"{key}= is scored in place of a split, got split={cfg.split}, too: leave out one of the two"
            )
    if cfg.cache is not None:
        require_lengths("cache", cfg.cache)
    if cfg.dynamic_lr is not None and (cfg.mix is not None or cfg.cache is not None):
        raise ValueError("dynamic_lr= changes the weights as it scores: leave out mix= and cache=")
    written = [Path(str(target)).resolve() for target in (cfg.result, cfg.arpa) if target is not None]
    if len(set(written)) < len(written):
        raise ValueError(f"arpa= and result= would both write {cfg.arpa}: give each a file of its own")
    for target in (cfg.result, cfg.arpa):
        require_target(target, files_of(cfg, "checkpoint", "mix", "text", "midi", *OWN_TEXT))


def rates_of(cfg: DictConfig) -> list[float]:
    """The rates of `dynamic_lr`, none where it is null. ValueError for an empty list or a rate that is not > 0."""
    if cfg.dynamic_lr is None:
        return []
    rates = list(cfg.dynamic_lr) if isinstance(cfg.dynamic_lr, ListConfig) else [cfg.dynamic_lr]
    if not rates or not all(type(rate) in (float, int) and 0 < rate < math.inf for rate in rates):
        raise ValueError(
            f"dynamic_lr must be > 0 and finite, or a list of such rates, got {cfg.dynamic_lr!r}"
        )
    return [float(rate) for rate in rates]


def choose_rate(scorer: Scorer, rates: Sequence[float], valid: np.ndarray) -> dict[str, float]:
    """Leave the scorer with the learning rate that suits the validation text best; the perplexity there by rate."""
    assert isinstance(scorer, NetworkScorer)
    weights = {name: weight.clone() for name, weight in scorer.network.state_dict().items()}
    tried = {}
    for rate in rates:
        scorer.learn_at(rate)
        tried[str(rate)] = perplexity(float(scorer.score(valid).mean()))
        scorer.network.load_state_dict(weights)
    best = min(tried, key=lambda rate: tried[rate] if math.isfinite(tried[rate]) else math.inf)
    scorer.learn_at(float(best))
    return tried


def export(scorer: Scorer, path: Path) -> dict[str, Any]:
    """Write an ARPA file; what was written. ValueError for a model that is more or less than n-grams."""
    if not isinstance(scorer, CountScorer) or not isinstance(scorer.model, BackoffModel):
        raise ValueError(
            f"arpa= writes the n-grams of a model such as model=kn; {scorer.name} is of another kind: train model=kn, "
            "or leave it out"
        )
    write_arpa(path, scorer.model, scorer.vocabulary.words)
    sizes = [f"{len(level.p):,} of order {n}" for n, level in enumerate(scorer.model.levels, start=1)]
    return {"checkpoint": scorer.name, "arpa": str(path), "ngrams": sizes, **needs_of_texts(scorer.tokenizer)}


def needs_of_texts(tokenizer: Tokenizer) -> dict[str, str]:
    """What a text needs before an ARPA file, which knows words between blanks in lines, reads it as the counts did."""
    needs = {
        "lower case": tokenizer.lowercase or tokenizer.unit == "english",
        "a blank after each character": tokenizer.unit == "char",
        "blanks around punctuation, N for numbers": tokenizer.unit == "english",
        "all its words in one line": not tokenizer.eos,
    }
    needed = ", ".join(need for need, holds in needs.items() if holds)
    return {"texts_need": needed} if needed else {}
